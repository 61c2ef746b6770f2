// observe -> plan -> run for one JobSet. Every rule is in runtimes/jobset.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "api/jobset.hh"
#include "controller/kinds/common/collections.hh"
#include "controller/kinds/jobset/jobset_state.hh"
#include "controller/registration/job_metrics.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/planned_controller.hh"
#include "runtimes/jobset/plan.hh"

namespace trainer {

// Kept of one JobSet between its reconciles.
struct JobSetMemory : kube::ObjectMemory {
  // Jobs that were complete when they were deleted, in their last state, by name.
  std::map<std::string, std::shared_ptr<const JobView>> removed_jobs;
  JobRecord record;  // the metrics read it
};

struct JobSetPlan : kube::Plan {
  kube::PlannedEvent::End end = kube::PlannedEvent::End::kNone;  // the end that the status reports
};

class JobSetController final
    : public kube::PlannedController<DecodedJobSet, JobSetMemory, JobSetPlan> {
 public:
  struct Settings {
    jobset::Gates gates;
    std::set<std::string, std::less<>> upstream_namespaces;  // see UpstreamLeaseOptions
    std::shared_ptr<JobCensus> jobs;
  };
  using Job = std::shared_ptr<const JobView>;
  using Pod = std::shared_ptr<const PodView>;

  JobSetController(const kube::ControllerContext& context, std::shared_ptr<JobSetState> shared,
                   Settings settings);

  // Once the mode is known.
  bool is_ready() const override { return is_mode_known_; }
  // Follows the upstream JobSet controller.
  std::vector<kube::BackgroundTask> tasks() override;

  void on_service(const Stored& before, const Stored& after);
  void name_is_free(const kube::ObjectKey& jobset);
  void on_job(const Job& before, const Job& after);
  void on_pod(const Pod& before, const Pod& after);

 private:
  const kube::FieldErrors* errors_of(const DecodedJobSet& decoded) const override {
    return decoded.jobset ? nullptr : &decoded.jobset.error();
  }
  kube::Task<JobSetPlan> plan(const Subject& subject) override;
  // A JobSet that a TrainJob owns is counted as that.
  void measure(const Subject& subject) override;
  bool is_end_counted(const kube::StoredObject& stored) const override;
  void on_status(const Subject& subject, const JobSetPlan& plan) override;
  void keep(const Subject& subject, const kube::NamedObject& named, kube::Json object,
            Origin origin, kube::ReadObject& kept) override;

  // Fills in what plan() reads beside Jobs and gates.
  void observe(const Subject& subject, std::span<const JobView* const> jobs,
               jobset::Observed& observed);
  // Plans for very many Jobs in steps, so that other objects can be reconciled in between.
  kube::Task<kube::Plan> plan_in_slices(const Subject& subject);
  // Without those of a former JobSet of the same name, which may still be ending.
  std::vector<const PodView*> pods_of(const kube::ObjectKey& key, const std::string& uid) const;
  void count_end(const char* counter, std::uint32_t times) const;
  void upstream_changed(bool is_present);

  const std::shared_ptr<JobSetState> shared_;
  const Settings settings_;
  const StoredCache& services_;  // owners only
  const JobCache& jobs_;
  const PodCache& pods_;
  jobset::FailurePatternCache failure_patterns_;
  bool is_mode_known_;
  const JobMetrics job_metrics_;
};

}  // namespace trainer
