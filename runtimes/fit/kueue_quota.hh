// The answer is that of Kueue about a job now: its quota, the workloads before it, and those that
// it preempts. Pure.
#pragma once

#include <string>
#include <vector>

#include "runtimes/fit/kueue_state.hh"
#include "runtimes/fit/plan_fit.hh"

namespace trainer::fit {

struct QueueAnswer {
  Verdict verdict = Verdict::kFits;
  std::vector<Reason> reasons;  // none for kFits
  QueuePlan plan;
  std::vector<std::string> undecided;
  // The job's roles with the node labels and tolerations that their flavors add to the pods.
  std::vector<Role> roles;
};

// A job of which Kueue would preempt others is kWaits, and the plan names them.
QueueAnswer kueue_quota(const Asked& asked, const KueueState& state);

}  // namespace trainer::fit
