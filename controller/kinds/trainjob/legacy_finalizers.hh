// Removes from runtimes the finalizer that Kubeflow Trainer v2.0 to v2.2 set (its
// pkg/constants, ResourceInUseFinalizer).
#pragma once

#include <optional>
#include <set>

#include "controller/kinds/common/collections.hh"
#include "kube/client/api_client.hh"
#include "kube/client/notifier.hh"
#include "kube/manager/log.hh"

namespace trainer {

// Returns a merge patch, conditional on the version; nullopt if an object has no such finalizer.
std::optional<kube::Json> without_legacy_finalizer(const kube::Json& runtime);

// Without this, a runtime with that finalizer could never be deleted, nor could its namespace.
// Concurrency: the control loops' thread. Only the leader uses it.
class LegacyFinalizers {
 public:
  // `cluster_runtimes` is null if they are not watched. If `is_enabled` is false, it only warns,
  // once, that such a runtime exists.
  LegacyFinalizers(kube::asio::io_context& io, kube::ApiClient& client, const StoredCache& runtimes,
                   const StoredCache* cluster_runtimes, bool is_enabled, const kube::Log& log)
      : client_(client),
        runtimes_(runtimes),
        cluster_runtimes_(cluster_runtimes),
        is_enabled_(is_enabled),
        log_(log),
        wake_(io.get_executor()) {}

  // The runtime of this key has changed; without a namespace it is a ClusterTrainingRuntime.
  void changed(const kube::ObjectKey& key);
  // Runs until it is cancelled.
  kube::Task<void> run();

 private:
  kube::Task<bool> check(kube::ObjectKey key);
  kube::Task<bool> drop(kube::Resource resource, std::shared_ptr<const kube::StoredObject> stored);

  kube::ApiClient& client_;
  const StoredCache& runtimes_;
  const StoredCache* const cluster_runtimes_;
  const bool is_enabled_;
  const kube::Log& log_;
  bool has_warned_ = false;
  bool is_running_ = false;  // run() begins with all, so until then no change is kept
  std::set<kube::ObjectKey> waiting_;
  kube::Notifier wake_;
};

}  // namespace trainer
