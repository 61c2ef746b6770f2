// The pipeline of TrainJobs gets these settings from the configuration.
#pragma once

#include "controller/config/configuration.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer {

// The plugins are those of production, and the status server's address is missing. The controller,
// admission and `render` build with the same settings, so that what one of them says is true for
// the others.
PipelineOptions pipeline_settings(const Configuration& configuration);

}  // namespace trainer
