// This file decides whether a JobSet has succeeded (JobSet, pkg/controllers/success_policy.go).
// Without a policy all Jobs must succeed.
#include "kube/model/name_index.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

constexpr std::string_view kMessage = "jobset completed successfully";

// The targets are all replicated jobs if none is named.
class Targets {
 public:
  explicit Targets(const std::vector<std::string>& names)
      : names_(names, [](const std::string& name) { return std::string_view(name); }),
        are_all_(names.empty()) {}
  bool contains(std::string_view name) const { return are_all_ || names_.contains(name); }

 private:
  kube::NameIndex names_;
  bool are_all_;
};

void complete(JobSetContext& context) {
  context.set_condition(kCompleted, true, "AllJobsCompleted", kMessage);
  context.set_condition(kRestarting, false, "JobSetCompleted", kMessage);
  context.status.terminalState = "Completed";
}

}  // namespace

bool apply_success_policy(JobSetContext& context) {
  static const SuccessPolicy kAll{"All", {}, {}};
  const SuccessPolicy& policy =
      context.jobset.spec.successPolicy ? *context.jobset.spec.successPolicy : kAll;
  const Targets targets(policy.targetReplicatedJobs);
  std::int64_t succeeded = 0;
  std::int64_t expected = 0;
  std::int64_t expired = 0;
  for (const JobView* job : context.jobs.successful) {
    if (targets.contains(job->replicated_job)) ++succeeded;
  }
  for (const ReplicatedJobState& rjob : context.rjobs) {
    expired += rjob.expired;
    if (!targets.contains(rjob.spec->name)) continue;
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
