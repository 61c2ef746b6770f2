// Processes that torchrun starts again in their pods are counted, and a job whose processes come no
// further ends (docs/users/restarts.md). Pure.
#pragma once

#include <cstdint>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "runtimes/trainjob/observed.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

// A job with processRestarts ends after this number of process restarts in a row at one step.
inline constexpr std::int32_t kMaxRestartsAtOneStep = 3;

// Counts the restarts that the heartbeats report in `status`, if its JobSet allows some, and shows
// them in restartBudget. `jobset` may be null; `has_heartbeats` says that those of `observed` are
// of this attempt. The number in `status` never falls: a new process of the controller takes those
// of the running attempt for counted.
void settle_process_restarts(const TrainJobObserved& observed, const JobSet* jobset,
                             bool has_heartbeats, TrainJobStatus& status, TrainJobPlan& plan);

}  // namespace trainer
