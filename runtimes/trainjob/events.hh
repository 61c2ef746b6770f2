// The events of a TrainJob, from what changed between two statuses: the same change never makes two
// events. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/trainjob.hh"
#include "kube/model/plan.hh"
#include "runtimes/trainjob/children.hh"
#include "runtimes/trainjob/phase.hh"

namespace trainer {

std::vector<kube::PlannedEvent> events_between(const TrainJobStatus& before,
                                               const TrainJobStatus& after,
                                               const PhaseVerdict& verdict,
                                               const std::optional<Blocked>& blocked);

// The JobSet of this job is made.
kube::PlannedEvent created_event(const TrainJob& job);
// The pods start without `what`.
kube::PlannedEvent ignored_event(const std::string& what);
// All `nodes` pods that train have a machine.
kube::PlannedEvent scheduled_event(std::int32_t nodes);

}  // namespace trainer
