// This file decides which events could say why a job waits, and when they are read. Pure.
#pragma once

#include <chrono>
#include <optional>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/plan.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

struct NeededEvents {
  std::optional<kube::EventSource> source;  // nullopt: there is none, or it is too early
  std::chrono::microseconds again_after{0};
};

// The job's status is one that no pod explains. `after` is its new status. `jobset` is its own
// JobSet, or nullptr. `job_without_pods` is a Job whose pods are refused, or are about to be
// created, or nullptr.
NeededEvents needed_events(const TrainJobObserved& observed, const TrainJobStatus& after,
                           const JobSet* jobset, const JobView* job_without_pods);

}  // namespace trainer
