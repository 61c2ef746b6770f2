// A reconcile of one TrainJob is observe -> plan -> run. Every rule is in runtimes/trainjob; this
// reads what the plan needs, and executes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/api.hh"
#include "controller/kinds/common/collections.hh"
#include "controller/kinds/jobset/jobset_state.hh"
#include "controller/kinds/trainjob/job_reader.hh"
#include "controller/kinds/trainjob/job_state.hh"
#include "controller/kinds/trainjob/legacy_finalizers.hh"
#include "controller/registration/kind_registration.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/decoded_objects.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/plan_runner.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

class TrainJobController final : public kube::Controller {
 public:
  struct Settings {
    explicit Settings(PipelineOptions options) : pipeline(std::move(options)) {}
    PipelineOptions pipeline;  // without the status server
    std::shared_ptr<ServerIdentity> server;
    unsigned short status_port = 0;
    jobset::Gates gates;
    bool removes_legacy_finalizers = false;
    bool marks_finished = false;
    std::shared_ptr<JobCensus> jobs;
    bool is_namespaced = false;  // ClusterTrainingRuntimes are neither watched nor read
  };
  using Stored = std::shared_ptr<const kube::StoredObject>;
  using Pod = std::shared_ptr<const PodView>;

  TrainJobController(const kube::ControllerContext& context, std::shared_ptr<JobSetState> shared,
                     Settings settings);

  kube::Task<kube::Result<kube::Requeue>> reconcile(kube::ObjectKey key) override;
  void forget(const std::string& uid) override;
  std::vector<kube::BackgroundTask> leader_tasks() override;

  void on_jobset(const Stored& before, const Stored& after);
  void on_pod(const Pod& before, const Pod& after);
  void on_runtime(const Stored& before, const Stored& after);

 private:
  struct DecodedJob {
    std::shared_ptr<const kube::Json> object;
    tl::expected<TrainJob, kube::FieldErrors> job;
    std::size_t shape = 0;  // a hash of generation, labels and annotations
  };
  static DecodedJob decode_job(std::shared_ptr<const kube::Json> object);

  // This is the JobSet that has the job's name, and the last state of an earlier one that was
  // deleted.
  struct Child {
    Stored stored;
    // It was decoded from `stored`, and changes with it.
    std::shared_ptr<const DecodedJobSet> decoded;
    std::optional<JobSet> deleted;

    const JobSet* jobset() const {
      return decoded && decoded->jobset ? &*decoded->jobset : nullptr;
    }
  };
  Child child_of(const kube::ObjectKey& key, const JobState& state);
  TrainJobObserved observe(const TrainJob& job, const kube::Json& object, const JobState& state,
                           const JobReader::Reads& reads, const Child& child) const;
  kube::Task<kube::Result<TrainJobPlan>> make_plan(const TrainJob& job, const kube::Json& object,
                                                   std::shared_ptr<JobState> state,
                                                   const Child& child);
  // The options of the installation, with the status server's address and its current CA, which new
  // pods get.
  PipelineOptions pipeline_options() const;
  void keep_deleted_jobset(const kube::StoredObject& last);
  void measure_unreadable(const kube::Json& object, const kube::ObjectKey& key,
                          const std::string& uid);
  void measure(const TrainJob& job, const kube::Json& object, JobState& state,
               const JobSet* jobset) const;
  // Updates the job's metrics by its status in the cache, which this reconcile may have written.
  // `before` is the object in the version that was reconciled.
  void measure_written(const Stored& before, JobState& state);

  const kube::ControllerContext context_;
  const std::shared_ptr<JobSetState> shared_;
  const Settings settings_;
  const StoredCache& trainjobs_;
  const StoredCache& jobsets_;
  const JobCache& jobs_;
  const PodCache& pods_;
  JobReader reader_;
  LegacyFinalizers finalizers_;
  const JobMetrics job_metrics_;
  std::unordered_map<std::string, std::shared_ptr<JobState>> states_;
  kube::DecodedObjects<DecodedJob> decoded_{decode_job};
};

}  // namespace trainer
