#include "controller/cli/cluster.hh"

#include <fmt/format.h>

#include <ostream>

#include "kube/client/kubeconfig.hh"

namespace trainer {

kube::Result<std::unique_ptr<Cluster>> Cluster::connect(const ClusterOptions& options) {
  auto config = kube::load_config(options.kubeconfig, options.context);
  if (!config) return tl::unexpected(config.error());
  config->user_agent = "kubectl-trainer/" TRAINER_VERSION;
  std::unique_ptr<Cluster> cluster(new Cluster());
  cluster->ns_ = options.ns.empty() ? config->ns : options.ns;
  kube::TransportLimits limits;
  cluster->transport_ = kube::make_transport(cluster->io_, *config, limits);
  cluster->client_ =
      std::make_unique<kube::ApiClient>(*cluster->transport_, cluster->clock_, cluster->random_);
  return cluster;
}

int report_cluster_error(const kube::Error& error, std::string_view what, Console& console) {
  using kube::ErrorCode;
  if (error.code == ErrorCode::kNotFound) {
    console.err << fmt::format(
        "{}: there is none: `kubectl get trainjobs -A` lists them all, -n names a namespace\n",
        what);
    return kExitRefused;
  }
  if (error.code == ErrorCode::kForbidden || error.code == ErrorCode::kInvalid ||
      error.code == ErrorCode::kBadRequest) {
    console.err << fmt::format("{}: {}\n", what, error.message);
    return kExitRefused;
  }
  console.err << fmt::format(
      "{}: {}: is the cluster up, and --kubeconfig or --context the right one?\n", what,
      error.message);
  return kExitNoCluster;
}

}  // namespace trainer
