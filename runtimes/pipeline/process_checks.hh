// TrainJobs with more processes than a machine or a framework allows are refused.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kube/model/field_error.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// These are the processes of one node, before a bound is applied.
struct NodeProcesses {
  std::int64_t number = 1;
  bool is_desired = false;  // numProcPerNode of the job or its runtime says it; else resources do
};

// `index` is the job whose pods are the nodes. The draft is prepared. The error is at the field
// that the number comes from.
void check_processes(const Draft& draft, std::size_t index, const NodeProcesses& processes,
                     kube::FieldErrors& errors);

}  // namespace trainer::pipeline
