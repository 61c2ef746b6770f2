// What the Job controller writes into a Job's status. Pure.
#pragma once

#include <vector>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "tests/simulation/api_store.hh"

namespace trainer::simulation {

bool is_deleting(const kube::Json& object);
bool is_job_condition_true(const kube::Json& job, std::string_view type);
bool is_job_finished(const kube::Json& job);
int completions_of(const kube::Json& job);
std::string_view phase_of(const kube::Json& pod);
bool is_over(const kube::Json& pod);   // Succeeded or Failed
bool is_ready(const kube::Json& pod);  // condition Ready is True
int index_of(const kube::Json& pod);

struct JobCounts {
  int failed = 0;     // pods, over the Job's life
  int succeeded = 0;  // indices
};
// The Job with the status that follows from its pods.
kube::Json with_status(const kube::Json& job, const std::vector<Object>& pods, JobCounts counts,
                       kube::Time now);

}  // namespace trainer::simulation
