// This file computes the phase of a TrainJob, and why (status.phase, reason, message). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/trainjob.hh"
#include "runtimes/trainjob/children.hh"
#include "runtimes/trainjob/nodes.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

struct PhaseVerdict {
  std::string phase;
  std::string reason;
  std::string message;
  bool is_problem = false;      // a person may have to act: makes an event
  bool is_unexplained = false;  // pods are missing or not starting, and none of them says why
};

// Returns whether a person may have to act upon a reason: it separates "waits as usual" from "is
// stuck".
bool is_problem_reason(std::string_view reason);

// Returns the condition RestartingJobSet if it is true, else nullptr.
const kube::Condition* restarting_condition(const JobSet& jobset);

// `after` is the status with its conditions settled, and `before` the stored one. `pods` is nullptr
// without a JobSet. `job_without_pods` is a Job whose pods are missing, or nullptr.
PhaseVerdict compute_phase(const TrainJobObserved& observed, const TrainJobStatus& before,
                           const TrainJobStatus& after, const PodFacts* pods,
                           const JobView* job_without_pods, const std::optional<Blocked>& blocked);

}  // namespace trainer
