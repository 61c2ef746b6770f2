// Takes from runtimes the finalizer that Trainer v2.0 to v2.2 put there (trainer-contract 2.9).
#pragma once

#include <optional>

#include "controller/core/log.hh"
#include "controller/core/stores.hh"
#include "kube/client/api_client.hh"
#include "kube/client/notifier.hh"

namespace trainer {

// A merge patch, conditional on the version; nullopt where an object has no such finalizer.
std::optional<kube::Json> without_legacy_finalizer(const kube::Json& runtime);

// Without this a runtime of that time could never be deleted, nor could its namespace.
// Concurrency: the control loops' thread. For the leader only.
class LegacyFinalizers {
 public:
  LegacyFinalizers(kube::asio::io_context& io, kube::ApiClient& client, const Stores& stores,
                   const Log& log)
      : client_(client), stores_(stores), log_(log), wake_(io.get_executor()) {}

  // Some runtime has changed.
  void wake() {
    has_changed_ = true;
    wake_.notify();
  }
  // Until cancelled.
  kube::Task<void> run();

 private:
  kube::Task<bool> drop_all();
  kube::Task<bool> drop(kube::Resource resource, std::shared_ptr<const StoredObject> stored);

  kube::ApiClient& client_;
  const Stores& stores_;
  const Log& log_;
  bool has_changed_ = true;  // since the last look began
  kube::Notifier wake_;
};

}  // namespace trainer
