// Slow ranks in the status of a TrainJob, and in the words of events and of `trainer why`. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/trainjob.hh"
#include "runtimes/stall/stragglers.hh"
#include "runtimes/trainjob/stall.hh"

namespace trainer {

std::vector<StragglerStatus> stragglers_of(const std::vector<stall::Straggler>& named);

// Returns `now`, where those of `before` keep the figure that they were named with.
std::vector<StragglerStatus> with_times_of(const std::vector<StragglerStatus>& before,
                                           std::vector<StragglerStatus> now);

// Sets `after.stragglers`. `heartbeats` are those of the present attempt; without them the last
// ones stay, since a new process must compare the ranks for some time. `may_run` says that the job
// may have pods.
void settle_stragglers(const HeartbeatFacts* heartbeats, bool may_run, const TrainJobStatus& before,
                       TrainJobStatus& after);

// Returns "rank 5 (pod P, node N) is slow: its own work takes 1.8 times the median; ...".
std::string describe(const StragglerStatus& straggler);

// Returns the text about those that are not in `before`; "" if there are none.
std::string newly_slow(const std::vector<StragglerStatus>& before,
                       const std::vector<StragglerStatus>& now);

}  // namespace trainer
