// These rules say what of a TrainJob's spec.trainer may change, by its stored object.
#pragma once

#include <string_view>

#include "kube/model/json.hh"

namespace trainer::wire {

// Returns the rule of keeps_trainer() in CEL. The API server estimates the cost of a comparison by
// its types, which it does not know of optional values (`?.`): so each member is tested by has().
std::string_view trainer_rule();

// Returns whether a change leaves spec.trainer alone, except for the number of nodes of an elastic
// job. In any other job a part that is added or removed is no change here.
bool keeps_trainer(const kube::Json& job, const kube::Json& before);

// Returns whether a job that has run, and is not elastic, has spec.trainer if it had it before.
bool keeps_part(const kube::Json& job, const kube::Json& before);

// Returns whether a change of the number of nodes stays within the bounds of an elastic job.
bool keeps_bounds(const kube::Json& job, const kube::Json& before);

}  // namespace trainer::wire
