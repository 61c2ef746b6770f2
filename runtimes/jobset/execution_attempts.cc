#include "runtimes/jobset/execution_attempts.hh"

#include <algorithm>
#include <string>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/policies.hh"
#include "runtimes/views/labels.hh"

namespace trainer::jobset {
namespace {

// A Job that has the number of this run was suspended since. The JobSet runs, so it was resumed
// before its status said that it was suspended.
bool was_suspended(const JobSetContext& context) {
  if (!context.status.executionAttempts) return false;
  const std::string current = std::to_string(*context.status.executionAttempts);
  return std::ranges::any_of(context.jobs.active, [&current](const JobView* job) {
    return job->is_suspended && !job->is_deleting && job->scheduling &&
           job->scheduling->get("annotations").get_string(kExecutionAttemptKey) == current;
  });
}

}  // namespace

bool counts_attempts(const ReplicatedJob& replicated_job) {
  return replicated_job.template_
      .get_path({"spec", "template", "metadata", "annotations", kExecutionAttemptKey})
      .is_string();
}

bool counts_attempts(const JobSet& jobset) {
  return std::ranges::any_of(jobset.spec.replicatedJobs,
                             [](const ReplicatedJob& each) { return counts_attempts(each); });
}

std::int32_t current_attempt(const JobSetStatus& status) {
  return status.executionAttempts.value_or(status.restarts);
}

bool begin_attempt(JobSetContext& context) {
  JobSetStatus& status = context.status;
  // The first status that is written has the number of the first run.
  const bool is_first = status.replicatedJobsStatus.empty();
  if (!is_first && status.conditions.empty() && !status.executionAttempts) return false;
  const bool is_resumed =
      kube::is_condition_true(status.conditions, kSuspended) || was_suspended(context);
  if (!is_first && !is_resumed) return false;
  if (!counts_attempts(context.jobset)) return false;
  const bool has_run = status.executionAttempts.has_value();
  status.executionAttempts = current_attempt(status) + (has_run ? 1 : 0);
  if (!is_resumed) return false;
  context.set_condition(kSuspended, false, "ResumeJobs", "jobset is resumed");
  return true;
}

}  // namespace trainer::jobset
