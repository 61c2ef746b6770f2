// Which events could say why a job waits, and when they are read. Pure.
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

// For a job whose status no pod explains. `after`: its status as it becomes. `jobset`: its own, or
// nullptr. `job_without_pods`: a Job whose pods are refused, or are about to be created, or
// nullptr.
NeededEvents needed_events(const TrainJobObserved& observed, const TrainJobStatus& after,
                           const JobSet* jobset, const JobView* job_without_pods);

}  // namespace trainer
