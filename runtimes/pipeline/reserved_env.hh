// A framework's plugin sets environment variables of these names itself.
#pragma once

#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Adds one error for each entry of spec.trainer.env that uses a reserved name. `alternative` says
// how to get what the variable is for.
void refuse_reserved_env(const TrainJob& job, const std::vector<std::string_view>& reserved,
                         std::string_view alternative, kube::FieldErrors& errors);

}  // namespace trainer::pipeline
