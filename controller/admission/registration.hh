// Keeps the API server's webhook configurations pointing at us.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/admission/webhooks.hh"
#include "controller/core/log.hh"
#include "kube/client/api_client.hh"
#include "kube/client/notifier.hh"
#include "kube/client/semaphore.hh"
#include "kube/client/watcher.hh"

namespace trainer {

// In the cluster: the configurations are installed by an administrator, and only `caBundle` is
// ours. Follows them by two watches, so that one that was deleted and applied again works at once.
// Concurrency: the io_context thread of the client. For the leader only.
class CaInjector {
 public:
  CaInjector(kube::asio::io_context& io, kube::ApiClient& client, const Log& log);
  ~CaInjector();
  CaInjector(const CaInjector&) = delete;
  CaInjector& operator=(const CaInjector&) = delete;

  void set_ca(std::string ca_pem);
  // Until cancelled.
  kube::Task<void> run();
  // True once every configuration seen carries the CA.
  bool is_done() const;

 private:
  class Sink;
  kube::Task<void> inject_forever();
  kube::Task<bool> inject_all();

  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  const Log& log_;
  std::string ca_pem_;
  kube::Notifier wake_;
  std::unique_ptr<Sink> mutating_;
  std::unique_ptr<Sink> validating_;
};

// Outside the cluster the whole configurations are ours.
class WebhookRegistrar {
 public:
  // `url`: how the API server reaches us, "https://HOST:PORT". `with_pods`: those of exclusive
  // placement too.
  WebhookRegistrar(kube::ApiClient& client, const Log& log, std::string url, bool with_pods)
      : client_(client), log_(log), url_(std::move(url)), with_pods_(with_pods) {}

  // Creates or updates them; call again with a new CA. Does nothing once they are withdrawn. Errors
  // name the object.
  kube::Task<kube::Result<void>> publish(std::string ca_pem);
  // Removes what publish() made, also one that is still under way. Call it before the process ends:
  // a webhook that nobody serves refuses every TrainJob.
  kube::Task<void> withdraw();

 private:
  std::vector<WebhookConfiguration> configurations(std::string ca_pem) const;

  kube::ApiClient& client_;
  const Log& log_;
  std::string url_;
  bool with_pods_;
  std::string username_;
  bool is_published_ = false;
  bool is_withdrawn_ = false;
  kube::Semaphore turn_{1};  // to publish or to withdraw
};

}  // namespace trainer
