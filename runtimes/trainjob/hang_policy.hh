// A stall leads to nothing, to a restart, or to the end of the job (docs/users/hangs.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/plan.hh"
#include "runtimes/stall/policy.hh"
#include "runtimes/trainjob/stall.hh"
#include "runtimes/views/job.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

// A job of policy Restart ends after this number of hangs in a row at one step.
inline constexpr std::int32_t kMaxHangsAtOneStep = 3;

// Returns the policy that the JobSet was made with. An unknown one counts as Warn.
stall::Policy hang_policy_of(const JobSet& jobset);

// Returns whether the heartbeats come from pods of this attempt that still run. The last ones of an
// earlier attempt stay until those of a later one come.
bool are_current(const HeartbeatFacts& heartbeats, const std::vector<const PodView*>& pods,
                 std::int32_t restarts);

struct HangAnswer {
  std::optional<kube::Action> action;
  std::string failure;  // the job fails with this message, if it is not empty
};

// Answers the stall of `status`, and counts a restart in it. A restart makes the Job of the first
// suspect fail by its deadline, whereupon the JobSet's failure policy decides; each attempt is
// ended once.
HangAnswer answer_hang(TrainJobStatus& status, stall::Policy policy, std::int64_t steps,
                       const std::vector<const PodView*>& pods,
                       const std::vector<const JobView*>& jobs);

// Returns whether the job has failed by its hang, so that its JobSet must go.
bool has_failed_by_hang(const TrainJobStatus& status);

}  // namespace trainer
