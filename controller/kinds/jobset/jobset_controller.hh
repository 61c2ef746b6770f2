// A reconcile of one JobSet is observe -> plan -> run. Every rule is in runtimes/jobset.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/jobset.hh"
#include "controller/kinds/common/collections.hh"
#include "controller/kinds/common/last_warning.hh"
#include "controller/kinds/jobset/jobset_state.hh"
#include "controller/kinds/jobset/known_claims.hh"
#include "controller/registration/job_metrics.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/plan_runner.hh"
#include "runtimes/jobset/plan.hh"

namespace trainer {

class JobSetController final : public kube::Controller {
 public:
  struct Settings {
    jobset::Gates gates;
    std::set<std::string, std::less<>> upstream_namespaces;  // see UpstreamLeaseOptions
    std::shared_ptr<JobCensus> jobs;
  };
  using Stored = std::shared_ptr<const kube::StoredObject>;
  using Job = std::shared_ptr<const JobView>;
  using Pod = std::shared_ptr<const PodView>;

  JobSetController(const kube::ControllerContext& context, std::shared_ptr<JobSetState> shared,
                   Settings settings);

  kube::Task<kube::Result<kube::Requeue>> reconcile(kube::ObjectKey key) override;
  void forget(const std::string& uid) override;
  // The controller is ready once the mode is known.
  bool is_ready() const override { return is_mode_known_; }
  // Follows the upstream JobSet controller.
  std::vector<kube::BackgroundTask> tasks() override;

  void on_service(const Stored& before, const Stored& after);
  void name_is_free(const kube::ObjectKey& jobset);
  void on_job(const Job& before, const Job& after);
  void on_pod(const Pod& before, const Pod& after);

 private:
  // Reads the events that the plan asks for.
  kube::Task<kube::Plan> plan_with_events(Stored stored, const JobSet& jobset);
  kube::Task<kube::Plan> plan_for(const kube::StoredObject& stored, const JobSet& jobset);
  // Fills in what plan() reads beside Jobs and gates.
  void observe(const kube::StoredObject& stored, const JobSet& jobset,
               std::span<const JobView* const> jobs, jobset::Observed& observed);
  std::vector<const JobView*> jobs_of(const std::string& ns, const std::string& uid) const;
  // Returns the pods without those of a former JobSet of the same name, which may still be ending.
  std::vector<const PodView*> pods_of(const kube::ObjectKey& key, const std::string& uid) const;
  std::vector<const JobView*> removed_jobs_of(const std::string& uid) const;
  // True while the object of this uid exists.
  bool exists(const kube::ObjectKey& key, const std::string& uid) const;
  // Updates the metrics by the JobSet's status in the cache. The reconcile itself may have written
  // that status: no reconcile follows a write that changes counters only. A JobSet that a TrainJob
  // owns is counted as that.
  void measure(const kube::ObjectKey& key, const std::string& uid);
  void count_end(const char* counter, std::uint32_t times) const;
  void upstream_changed(bool is_present);

  const kube::ControllerContext context_;
  const std::shared_ptr<JobSetState> shared_;
  const Settings settings_;
  const StoredCache& jobsets_;
  const StoredCache& services_;  // owners only
  const JobCache& jobs_;
  const PodCache& pods_;
  KnownClaims claims_;
  std::unordered_map<std::string, std::shared_ptr<LastWarning>> warnings_;  // by uid
  jobset::FailurePatternCache failure_patterns_;
  bool is_mode_known_;
  // These Jobs were complete when they were deleted. They are kept in their last state, by the uid
  // of their JobSet, as long as that exists, and by name.
  std::unordered_map<std::string, std::map<std::string, Job>> removed_;
  const JobMetrics job_metrics_;
  std::unordered_map<std::string, JobRecord> records_;  // by uid, also of finished JobSets
};

}  // namespace trainer
