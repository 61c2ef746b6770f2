// The plugins and Job decorators that the program uses; tests have lists of their own.
#pragma once

#include "runtimes/jobset/plan.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer {

const pipeline::Plugins& production_plugins();

// Returns the decorators in the order in which they change each Job of a TrainJob's JobSet.
jobset::JobDecorators production_job_decorators();

}  // namespace trainer
