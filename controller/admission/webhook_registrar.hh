// The API server's webhook configurations refer to this process.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/admission/webhook.hh"
#include "kube/client/api_client.hh"
#include "kube/client/notifier.hh"
#include "kube/client/semaphore.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/log.hh"

namespace trainer {

// This is for a controller in the cluster: an administrator installs the configurations, and only
// `caBundle` is written. Two watches follow them, so that a configuration that was deleted and
// applied again gets its CA at once. Concurrency: the io_context thread of the client. Only the
// leader uses it.
class CaInjector {
 public:
  // `names` are those of this controller's configurations; others are never changed. `has_mutating`
  // says whether mutating ones are among them.
  CaInjector(kube::asio::io_context& io, kube::ApiClient& client, std::set<std::string> names,
             const kube::Log& log, bool has_mutating = true);
  ~CaInjector();
  CaInjector(const CaInjector&) = delete;
  CaInjector& operator=(const CaInjector&) = delete;

  void set_ca(std::string ca_pem);
  // Runs until it is cancelled.
  kube::Task<void> run();

 private:
  struct Watched;
  bool needs_patch() const;
  kube::Task<void> inject_forever();
  kube::Task<bool> inject_all();
  kube::Task<kube::Result<std::string>> inject(kube::Resource resource, kube::ObjectKey key,
                                               kube::Json object, kube::Json operations);

  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  const std::set<std::string> names_;
  const kube::Log& log_;
  std::string ca_pem_;
  kube::Notifier wake_;
  std::vector<std::unique_ptr<Watched>> watched_;
};

// Returns the RBAC rules that a CaInjector with these names needs. A client that may patch any
// webhook configuration may read and change everything that is written to the cluster.
std::vector<kube::PolicyRule> ca_injector_rules(const std::set<std::string>& names,
                                                bool has_mutating = true);

// This is for a controller outside the cluster: it writes the whole configurations.
class WebhookRegistrar {
 public:
  // The API server reaches this process by `url`, "https://HOST:PORT".
  WebhookRegistrar(kube::ApiClient& client, const kube::Log& log, std::string url,
                   std::vector<Webhook> webhooks)
      : client_(client), log_(log), url_(std::move(url)), webhooks_(std::move(webhooks)) {}

  // Creates or updates the configurations; call it again with a new CA. It does nothing once they
  // are withdrawn. Errors name the object.
  kube::Task<kube::Result<void>> publish(std::string ca_pem);
  // Returns a text for the log of a process that ends without withdraw(): it says what an
  // administrator must do then.
  std::string removal() const;
  // Deletes the configurations that publish() made, also if a publish() is still running. Call it
  // before the process ends: with a webhook that no process serves, the API server refuses every
  // request.
  kube::Task<void> withdraw();

 private:
  std::vector<WebhookConfiguration> configurations(std::string ca_pem) const;

  kube::ApiClient& client_;
  const kube::Log& log_;
  std::string url_;
  std::vector<Webhook> webhooks_;
  std::string username_;
  bool is_published_ = false;
  bool is_withdrawn_ = false;
  kube::Semaphore publishing_{1};  // held while publishing or withdrawing
};

}  // namespace trainer
