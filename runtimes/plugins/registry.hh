// The plugins of production.
#pragma once

#include "runtimes/jobset/plan.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer {

const pipeline::Plugins& production_plugins();

// What is added to every Job of a TrainJob's JobSet.
jobset::JobDecorators production_job_decorators();

}  // namespace trainer
