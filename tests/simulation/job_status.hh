// Tests read this of a Job and of its pods. Pure.
#pragma once

#include <string_view>

#include "kube/model/json.hh"

namespace trainer::simulation {

bool is_deleting(const kube::Json& object);
bool is_job_condition_true(const kube::Json& job, std::string_view type);
std::string_view phase_of(const kube::Json& pod);
bool is_over(const kube::Json& pod);  // Succeeded or Failed
int index_of(const kube::Json& pod);

}  // namespace trainer::simulation
