// When a JobSet has succeeded (JobSet, pkg/controllers/success_policy.go). No policy means that all
// Jobs must.
#include <algorithm>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

constexpr std::string_view kMessage = "jobset completed successfully";

bool is_target(const std::vector<std::string>& targets, const std::string& name) {
  return targets.empty() || std::find(targets.begin(), targets.end(), name) != targets.end();
}

void complete(ReconcileContext& context) {
  context.set_condition(kCompleted, true, "AllJobsCompleted", kMessage);
  context.set_condition(kRestarting, false, "JobSetCompleted", kMessage);
  context.status.terminalState = "Completed";
}

}  // namespace

bool apply_success_policy(ReconcileContext& context) {
  static const SuccessPolicy kAll{"All", {}, {}};
  const SuccessPolicy& policy =
      context.jobset.spec.successPolicy ? *context.jobset.spec.successPolicy : kAll;
  std::int64_t succeeded = 0;
  std::int64_t expected = 0;
  std::int64_t expired = 0;
  for (const JobView* job : context.jobs.successful) {
    if (is_target(policy.targetReplicatedJobs, job->replicated_job)) ++succeeded;
  }
  for (const ReplicatedJobState& rjob : context.rjobs) {
    expired += rjob.expired;
    if (!is_target(policy.targetReplicatedJobs, rjob.spec->name)) continue;
    succeeded += rjob.expired;
    expected += rjob.replicas;
  }
  // A JobSet without any Job never completes by itself.
  if (context.jobs.successful.empty() && expired == 0) return false;
  if (policy.operator_ == "Any") expected = 1;
  if (succeeded < expected) return false;
  complete(context);
  return true;
}

}  // namespace trainer::jobset
