// No process can be started with these words and variables (kube/model/exec_limits.hh).
#pragma once

#include "kube/model/field_error.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer::pipeline {

// Returns one error for each word of a command, argument and variable of the built JobSet that is
// too long, with the field that it comes from. If there are very many, only the first ones are
// listed. `built` is made of the other three.
kube::FieldErrors check_exec_sizes(const Built& built, const TrainJob& job, const Runtime& runtime,
                                   const PipelineOptions& options);

}  // namespace trainer::pipeline
