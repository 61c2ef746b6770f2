// The time of a job is counted by its use (docs/users/goodput.md). Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "api/trainjob.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

// The seconds of a job whose use does not change are written this often, so that metrics have them.
inline constexpr std::chrono::hours kGoodputPause{1};

// Sets `after.goodput`, once ranks have reported. The other members of `after` are settled.
// `heartbeats` are those of the present attempt, or nullptr. Returns after which time it must be
// called again, if nothing else happens.
std::optional<std::chrono::seconds> settle_goodput(const TrainJobObserved& observed,
                                                   const HeartbeatFacts* heartbeats,
                                                   const TrainJobStatus& before,
                                                   TrainJobStatus& after);

// Returns whether ranks make steps now, old or new ones, as far as they report.
bool makes_steps(const TrainJobStatus& status);

// Returns "goodput 81 %: 3h productive, 12m queued, 5m recomputed; productive since TIME". Zeros
// but the first are left out.
std::string describe(const GoodputStatus& goodput);

}  // namespace trainer
