// observe -> plan -> run for one TrainJob. Every rule is in runtimes/trainjob.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/api.hh"
#include "controller/kinds/common/collections.hh"
#include "controller/kinds/jobset/jobset_state.hh"
#include "controller/kinds/trainjob/job_state.hh"
#include "controller/kinds/trainjob/legacy_finalizers.hh"
#include "controller/kinds/trainjob/runtime_snapshots.hh"
#include "controller/registration/kind_registration.hh"
#include "controller/status/heartbeat_board.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/planned_controller.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

struct DecodedTrainJob {
  std::shared_ptr<const kube::Json> object;
  tl::expected<TrainJob, kube::FieldErrors> job;
  std::size_t shape = 0;  // a hash of generation, labels and annotations
};

class TrainJobController final
    : public kube::PlannedController<DecodedTrainJob, JobState, TrainJobPlan> {
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
    std::shared_ptr<HeartbeatBoard> heartbeats;  // nullptr without a status server
    bool is_namespaced = false;  // ClusterTrainingRuntimes are neither watched nor read
  };
  using Pod = std::shared_ptr<const PodView>;

  TrainJobController(const kube::ControllerContext& context, std::shared_ptr<JobSetState> shared,
                     Settings settings);

  ~TrainJobController() override;

  std::vector<kube::BackgroundTask> leader_tasks() override;

  void on_jobset(const Stored& before, const Stored& after);
  void on_pod(const Pod& before, const Pod& after);
  void on_runtime(const Stored& before, const Stored& after);

 private:
  // The JobSet that has the job's name, and the last state of an earlier one that was deleted.
  struct Child {
    Stored stored;
    std::shared_ptr<const DecodedJobSet> decoded;  // decoded from `stored`
    std::optional<JobSet> deleted;

    const JobSet* jobset() const {
      return decoded && decoded->jobset ? &*decoded->jobset : nullptr;
    }
  };

  const kube::FieldErrors* errors_of(const DecodedTrainJob& decoded) const override {
    return decoded.job ? nullptr : &decoded.job.error();
  }
  kube::Task<TrainJobPlan> plan(const Subject& subject) override;
  kube::Plan plan_unreadable(const Subject& subject,
                             const kube::FieldErrors& errors) const override;
  void measure(const Subject& subject) override;
  kube::Result<void> complete(const Subject& subject, TrainJobPlan& plan) override;
  void on_done(const Subject& subject, const TrainJobPlan& plan) override;
  kube::Task<kube::Result<kube::ReadObject>> read(const Subject& subject,
                                                  kube::NamedObject named) override;
  void keep(const Subject& subject, const kube::NamedObject& named, kube::Json object,
            Origin origin, kube::ReadObject& kept) override;

  Child child_of(const Subject& subject) const;
  // `heartbeats` outlives the result.
  TrainJobObserved observe(const Subject& subject, const Child& child,
                           const HeartbeatFacts* heartbeats) const;
  void listen_to_heartbeats();
  // Returns the options of the installation, with the address of the status server and its current
  // CA, which new pods get.
  PipelineOptions pipeline_options() const;
  void keep_deleted_jobset(const kube::StoredObject& last);

  const std::shared_ptr<JobSetState> shared_;
  const Settings settings_;
  const StoredCache& jobsets_;
  const JobCache& jobs_;
  const PodCache& pods_;
  RuntimeSnapshots snapshots_;
  LegacyFinalizers finalizers_;
  const JobMetrics job_metrics_;
  const std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trainer
