// When a JobSet has succeeded: jobset-contract 3.5. No policy means that all Jobs must.
#include <algorithm>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

constexpr std::string_view kMessage = "jobset completed successfully";

bool is_target(const std::vector<std::string>& targets, const std::string& name) {
  return targets.empty() || std::find(targets.begin(), targets.end(), name) != targets.end();
}

void complete(Pass& pass) {
  pass.set_condition(kCompleted, true, "AllJobsCompleted", kMessage);
  pass.set_condition(kRestarting, false, "JobSetCompleted", kMessage);
  pass.status.terminalState = "Completed";
}

}  // namespace

bool apply_success_policy(Pass& pass) {
  static const SuccessPolicy kAll{"All", {}, {}};
  const SuccessPolicy& policy =
      pass.jobset.spec.successPolicy ? *pass.jobset.spec.successPolicy : kAll;
  std::int64_t succeeded = 0;
  std::int64_t expected = 0;
  std::int64_t remembered = 0;
  for (const JobView* job : pass.jobs.successful) {
    if (is_target(policy.targetReplicatedJobs, job->replicated_job)) ++succeeded;
  }
  for (const Wave& wave : pass.waves) {
    remembered += wave.remembered;
    if (!is_target(policy.targetReplicatedJobs, wave.spec->name)) continue;
    succeeded += wave.remembered;
    expected += wave.replicas;
  }
  // A JobSet without any Job never completes by itself.
  if (pass.jobs.successful.empty() && remembered == 0) return false;
  if (policy.operator_ == "Any") expected = 1;
  if (succeeded < expected) return false;
  complete(pass);
  return true;
}

}  // namespace trainer::jobset
