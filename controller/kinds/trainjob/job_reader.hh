// Reads by name the objects that the plan of a TrainJob needs and no cache has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/kinds/common/collections.hh"
#include "controller/kinds/trainjob/job_state.hh"
#include "controller/kinds/trainjob/runtime_snapshots.hh"
#include "kube/client/api_client.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

// Concurrency: the control loops' thread.
class JobReader {
 public:
  // These inputs of one reconcile are in no cache.
  struct Reads {
    std::shared_ptr<const RuntimeSnapshot> live_runtime;
    std::string runtime_error;
  };

  // `is_namespaced` says that ClusterTrainingRuntimes may not be read.
  JobReader(kube::ApiClient& client, const StoredCache& jobsets, bool is_namespaced)
      : client_(client), jobsets_(jobsets), is_namespaced_(is_namespaced), snapshots_(client) {}

  // Reads the objects that the plan lacks. Returns true if something was read, so that it makes
  // sense to plan again.
  kube::Task<kube::Result<bool>> read_needs(const TrainJob& job, const TrainJobPlan& plan,
                                            std::shared_ptr<JobState> state, Reads& reads);
  // Stores those of the written objects in `state` that are in no cache.
  void remember(const std::vector<kube::Action>& written, JobState& state);

 private:
  kube::Task<kube::Result<void>> read_snapshot(const TrainJob& job,
                                               std::shared_ptr<JobState> state);
  kube::Task<void> read_runtime(const TrainJob& job, Reads& reads);
  kube::Task<kube::Result<void>> read_dependent(const TrainJob& job, kube::Resource resource,
                                                kube::ObjectKey key,
                                                std::shared_ptr<JobState> state);
  std::shared_ptr<const SnapshotView> view_of_snapshot(const kube::Json& config_map,
                                                       const TrainJob& job);

  kube::ApiClient& client_;
  const StoredCache& jobsets_;
  const bool is_namespaced_;
  RuntimeSnapshots snapshots_;
};

}  // namespace trainer
