// Where a TrainJob stands, in one word, and why (status.phase, reason, message). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/trainjob.hh"
#include "runtimes/trainjob/children.hh"
#include "runtimes/trainjob/nodes.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";

struct PhaseVerdict {
  std::string phase;
  std::string reason;
  std::string message;
  bool is_problem = false;      // somebody may have to act: told in an event
  bool is_unexplained = false;  // pods are missing or not starting, and none of them says why
};

// Whether a reason is one that somebody may have to act upon; by it an event tells "waits as usual"
// from "is stuck".
bool is_problem_reason(std::string_view reason);

// `after`: the status with its conditions settled. `before`: the stored one. `pods`: nullptr
// without a JobSet.
PhaseVerdict compute_phase(const TrainJobObserved& observed, const TrainJobStatus& before,
                           const TrainJobStatus& after, const PodFacts* pods,
                           const std::optional<Blocked>& blocked);

}  // namespace trainer
