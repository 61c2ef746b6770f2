#include "controller/core/serving_options.hh"

namespace trainer {

ServingOptions serving_options(const Configuration& configuration,
                               std::optional<unsigned short> url_port) {
  const auto& webhook = configuration.webhook;
  ServingOptions serving;
  serving.webhook_address = webhook.host;
  serving.webhook_port = static_cast<unsigned short>(webhook.port);
  if (url_port && !webhook.is_port_set) serving.webhook_port = *url_port;
  serving.serves_status = configuration.featureGates.TrainJobStatus;
  serving.status_port = static_cast<unsigned short>(configuration.statusServer.port);
  serving.status_limits.qps = configuration.statusServer.qps;
  serving.status_limits.burst = configuration.statusServer.burst;
  serving.min_tls_version = configuration.tls.minVersion;
  serving.gates = jobset_gates(configuration.featureGates);
  return serving;
}

}  // namespace trainer
