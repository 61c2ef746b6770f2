// The difference between two statuses, as a merge patch. Pure.
#pragma once

#include <optional>

#include "api/trainjob.hh"
#include "kube/model/json.hh"

namespace trainer {

// {"status": {...}}, or nullopt when nothing changed. Members that others write (trainerStatus)
// never occur in it.
std::optional<kube::Json> status_patch(const TrainJobStatus& before, const TrainJobStatus& after);

// Returns whether the change may wait a second to be written together with the next: counters moved
// but the phase did not, or a new job is only being created or has no room yet.
bool is_minor_change(const TrainJobStatus& before, const TrainJobStatus& after);

}  // namespace trainer
