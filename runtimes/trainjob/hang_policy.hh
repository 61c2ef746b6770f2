// A stall leads to nothing, to a restart, or to the end of the job (docs/users/hangs.md). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "runtimes/trainjob/observed.hh"
#include "runtimes/trainjob/plan.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

// A job of policy Restart ends after this number of hangs in a row at one step.
inline constexpr std::int32_t kMaxHangsAtOneStep = 3;

// Returns whether the heartbeats come from pods of this attempt that still run. The last ones of an
// earlier attempt stay until those of a later one come.
bool are_current(const HeartbeatFacts& heartbeats, const std::vector<const PodView*>& pods,
                 std::int32_t restarts);

// Answers the stall of `status`, if it has one, by the JobSet's policy. A restart is counted in
// `status`, and makes the Job of the first suspect fail by its deadline, whereupon the JobSet's
// failure policy decides; each attempt is ended once. The heartbeats are those of this attempt.
void answer_hang(const TrainJobObserved& observed, const JobSet& jobset, TrainJobStatus& status,
                 TrainJobPlan& plan);

// Returns whether the job has failed by its hang, or by processes that come no further, so that its
// JobSet must go.
bool has_failed_by_heartbeats(const TrainJobStatus& status);

}  // namespace trainer
