// JobSets restart after disruptions by an extension of this controller (docs/decisions/0027).
//
// Preemption, drain and the loss of a node are not mistakes of the job, so they should not use up
// the restarts that are meant for mistakes. A JobSet opts in with the annotation
// `trainer.kubeflow.org/max-disruption-restarts: "<count>"`. Then:
// - Jobs get a podFailurePolicy rule that fails them when a pod with the condition DisruptionTarget
//   ends. So the Job's own failure condition says that it was a disruption, and it still says so
//   when the pod is gone. The rule is left out if the API would refuse it, or if the template has a
//   policy of its own with a rule for DisruptionTarget.
// - If the earliest failure is a disruption, the whole set restarts, and this restart does not
//   count towards maxRestarts. The annotation is the greatest number of such restarts. Those so far
//   are status.restarts minus status.restartsCountTowardsMax, so restarts by
//   RestartJobSetAndIgnoreMaxRestarts are among them. After that, a disruption is a failure like
//   any other.
// - Rules that name another action than a counted restart of the set keep precedence.
#pragma once

#include <cstdint>
#include <vector>

#include "runtimes/jobset/plan.hh"

namespace trainer::jobset {

// Returns the annotation's count; 0 if it is absent or no positive number.
std::int32_t max_disruption_restarts(const JobSet& jobset);
// Adds the rule described above to a Job's spec.
void report_disruptions(kube::Json& job_spec);
// `is_kept` says that restarts may keep the Job. Its pods then have the label of an earlier
// attempt.
bool is_pod_of(const PodView& pod, const JobView& job, bool is_kept);
// Returns whether this Job failed because its pods were disrupted.
bool was_disrupted(const JobView& job, const std::vector<const PodView*>& pods, bool is_kept);

}  // namespace trainer::jobset
