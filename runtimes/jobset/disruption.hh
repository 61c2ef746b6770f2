// Restarts after disruptions, an extension of this controller (docs/decisions/0027).
//
// Preemption, drain and the loss of a node are not mistakes of the job, so they should not use up
// the restarts that are meant for mistakes. A JobSet opts in with the annotation
// `trainer.kubeflow.org/max-disruption-restarts: "<count>"`. Then:
// - Jobs get a podFailurePolicy rule that fails them when a pod with the condition DisruptionTarget
//   ends. So the Job's own failure condition says that it was a disruption, and it still says so
//   when the pod is gone. Left out where the API would refuse it or the template has a policy of
//   its own that already speaks of DisruptionTarget.
// - When the earliest failure is a disruption, the whole set restarts without counting towards
//   maxRestarts, as long as the restarts that did not count (status.restarts less
//   status.restartsCountTowardsMax, which includes those of RestartJobSetAndIgnoreMaxRestarts)
//   stay below the count. After that it is a failure like any other.
// - Rules that name another action than a counted restart of the set keep precedence.
#pragma once

#include <cstdint>
#include <vector>

#include "runtimes/jobset/plan.hh"

namespace trainer::jobset {

// The annotation's count; 0 when it is absent or no positive number.
std::int32_t max_disruption_restarts(const JobSet& jobset);
// Adds the rule described above to a Job's spec.
void report_disruptions(kube::Json& job_spec);
// `is_kept`: restarts may keep the Job, and then its pods have the label of an earlier attempt.
bool is_pod_of(const PodView& pod, const JobView& job, bool is_kept);
// Whether this Job failed because pods of it were disrupted.
bool was_disrupted(const JobView& job, const std::vector<const PodView*>& pods, bool is_kept);

}  // namespace trainer::jobset
