#include "controller/kinds/trainjob/pipeline_settings.hh"

#include "runtimes/plugins/registry.hh"

namespace trainer {

PipelineOptions pipeline_settings(const Configuration& configuration) {
  PipelineOptions options(production_plugins());
  options.cluster_domain = configuration.clusterDomain;
  options.is_progress_enabled =
      configuration.featureGates.TrainJobStatus || configuration.statusServer.enabled;
  options.is_progress_opt_in = !configuration.featureGates.TrainJobStatus;
  options.counts_attempts = configuration.jobsetController.mode != JobSetControllerMode::kOff;
  options.devices = configuration.devices;
  return options;
}

}  // namespace trainer
