// Words and variables that no process can be started with (kube/model/exec_limits.hh).
#pragma once

#include "kube/model/field_error.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer::pipeline {

// One error for each word of a command, argument and variable of the built JobSet that is too long,
// with the field that it comes from. Where there are very many, only the first ones are
// listed. `built` is made of the other three.
kube::FieldErrors check_exec_sizes(const Built& built, const TrainJob& job, const Runtime& runtime,
                                   const PipelineOptions& options);

}  // namespace trainer::pipeline
