// What the configuration says to the pipeline of TrainJobs.
#pragma once

#include "controller/config/configuration.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer {

// With the plugins of production, and without the status server's address. The controller,
// admission and `render` build with the same settings, so that what one of them says is true for
// the others.
PipelineOptions pipeline_settings(const Configuration& configuration);

}  // namespace trainer
