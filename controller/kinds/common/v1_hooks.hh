// V1 jobs and MPIJobs of v2beta1 have these parts of `render`, `why` and `logs` in common. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/v1job.hh"
#include "controller/registration/command_hooks.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

// Leaves out pods that the API server would refuse, with their errors. Pods with the same errors
// are reported once.
Rendered render_children(std::vector<kube::Json> children);

// Returns the last condition that is true, except for a refusal of a child, and whether the job has
// ended. A job without conditions has a message about its manager. `manager` names this controller.
ObjectState state_of_conditions(const v1::V1Job& job, std::string_view manager);
// A refusal of a child explains why the job waits, and what helps.
void add_refusal(const v1::JobStatus& status, ObjectState& state);

// Reads the role from this label. nullopt says that the pod has none.
std::optional<PodPlace> read_role_place(const kube::ObjectMeta& pod, std::string_view role_key);

}  // namespace trainer
