// observe -> plan -> act for one TrainJob. Every rule is in runtimes/trainjob; this reads what the
// plan asks for, and writes what it says.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "api/api.hh"
#include "controller/core/decoded_objects.hh"
#include "controller/core/jobset_ownership.hh"
#include "controller/core/plan_runner.hh"
#include "controller/core/runtime_snapshots.hh"
#include "controller/core/stores.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

// Concurrency: the control loops' thread; never two calls for one key at a time (the queue sees to
// it).
class TrainJobReconciler {
 public:
  TrainJobReconciler(Stores& stores, kube::ApiClient& client, PlanRunner& plan_runner,
                     const JobSetOwnership& ownership, jobset::Gates gates, PipelineOptions options,
                     kube::Clock& clock)
      : stores_(stores),
        client_(client),
        plan_runner_(plan_runner),
        ownership_(ownership),
        gates_(gates),
        options_(std::move(options)),
        clock_(clock),
        snapshots_(client) {}

  kube::Task<kube::Result<Requeue>> reconcile(kube::ObjectKey key);
  void forget(const std::string& uid);
  // The last state of a JobSet that is gone: it tells whether its job had ended.
  void jobset_removed(const StoredObject& last);
  // What new pods are told about the status server; follows the rotation of its certificate.
  void set_options(PipelineOptions options) { options_ = std::move(options); }

 private:
  // What was learnt about a job by reading it by name; once per uid and process, because these
  // objects are not watched.
  struct JobState {
    std::optional<std::shared_ptr<const SnapshotView>> snapshot;
    bool is_fresh = true;  // nothing was read or written for this job by this process
    std::map<std::string, bool> dependents;
    std::map<std::string, std::shared_ptr<const kube::Json>> dependent_objects;
    std::shared_ptr<const kube::CompressedText> deleted_jobset;
    std::optional<std::size_t> shape;  // the job's, when last looked at
    std::int32_t total_nodes = 0;      // of the JobSet that was built
    std::string build_error;
    std::string waiting_event;
    std::optional<std::chrono::steady_clock::time_point> events_asked;

    // What stands beside the JobSet is read again before it is written again.
    void forget_reads() {
      snapshot.reset();
      dependents.clear();
      dependent_objects.clear();
    }
  };
  // One reconcile's inputs that are not in the stores.
  struct Reads {
    std::shared_ptr<const RuntimeSnapshot> live_runtime;
    std::string runtime_error;
  };

  struct DecodedJob {
    std::shared_ptr<const kube::Json> object;
    tl::expected<TrainJob, kube::FieldErrors> job;
    std::size_t shape = 0;  // a hash of generation, labels and annotations
  };
  static DecodedJob decode_job(std::shared_ptr<const kube::Json> object);

  // The JobSet of the job's name as it stands, and the one that stood before it.
  struct Child {
    std::shared_ptr<const StoredObject> stored;
    std::shared_ptr<const DecodedJobSet> decoded;  // of `stored`, with it
    std::optional<JobSet> deleted;

    const JobSet* jobset() const {
      return decoded && decoded->jobset ? &*decoded->jobset : nullptr;
    }
  };
  Child child_of(const kube::ObjectKey& key, const JobState& job_state);
  TrainJobObserved observe(const TrainJob& job, const kube::Json& object, const JobState& job_state,
                           const Reads& reads, const Child& child) const;
  kube::Task<kube::Result<TrainJobPlan>> make_plan(const TrainJob& job, const kube::Json& object,
                                                   std::shared_ptr<JobState> job_state,
                                                   const Child& child);
  // Reads what the plan lacks. True when something was read, so that planning again makes sense.
  kube::Task<kube::Result<bool>> read_needs(const TrainJob& job, const TrainJobPlan& plan,
                                            std::shared_ptr<JobState> job_state, Reads& reads);
  kube::Task<kube::Result<void>> read_snapshot(const TrainJob& job,
                                               std::shared_ptr<JobState> job_state);
  kube::Task<void> read_runtime(const TrainJob& job, Reads& reads);
  kube::Task<void> read_events(const TrainJob& job, std::shared_ptr<JobState> job_state);
  kube::Task<kube::Result<void>> read_dependent(const TrainJob& job, kube::Resource resource,
                                                kube::ObjectKey key,
                                                std::shared_ptr<JobState> job_state);
  bool have_jobs_started(const std::string& jobset_uid) const;
  std::shared_ptr<const SnapshotView> view_of_snapshot(const kube::Json& config_map,
                                                       const TrainJob& job);
  void remember(const std::vector<kube::Action>& actions, JobState& job_state);

  Stores& stores_;
  kube::ApiClient& client_;
  PlanRunner& plan_runner_;
  const JobSetOwnership& ownership_;
  const jobset::Gates gates_;
  PipelineOptions options_;
  kube::Clock& clock_;
  RuntimeSnapshots snapshots_;
  std::unordered_map<std::string, std::shared_ptr<JobState>> job_states_;
  DecodedObjects<DecodedJob> jobs_{decode_job};
};

}  // namespace trainer
