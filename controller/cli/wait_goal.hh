// The state that `trainer wait` waits for. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/registration/command_hooks.hh"

namespace trainer {

struct WaitGoal {
  enum class Kind { kComplete, kFailed, kFinished, kRunning, kSuspended, kPhase };
  Kind kind = Kind::kFinished;
  std::string phase;  // in lower case; only with kPhase
};

// Reads "complete", "failed", "finished", "running", "suspended" or "phase=X", in upper or lower
// case. nullopt for anything else.
std::optional<WaitGoal> read_wait_goal(std::string_view text);

// kNever says that the job has ended otherwise.
enum class WaitVerdict { kReached, kWaiting, kNever };
// `running` is the phase of this kind's jobs whose pods run. A job that is complete has run. Jobs
// of all kinds have the condition Suspended; the phase of one in a queue may be another one.
WaitVerdict check_wait(const WaitGoal& goal, const kube::Json& object, const ObjectState& state,
                       std::string_view running);

}  // namespace trainer
