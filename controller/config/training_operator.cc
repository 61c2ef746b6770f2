#include "controller/config/training_operator.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/names.hh"

namespace trainer {
namespace {

using kube::Result;

constexpr std::string_view kAll = "all";
constexpr std::int32_t kDefaultWorkers = 32;  // the number in the registrations of V1 jobs

tl::expected<std::vector<const v1::Framework*>, std::string> frameworks_of(
    const std::vector<std::string>& schemes) {
  const bool is_all = std::find(schemes.begin(), schemes.end(), kAll) != schemes.end();
  return v1::enabled_frameworks(is_all ? std::vector<std::string>() : schemes);
}

template <class T>
void use(T& target, const std::optional<T>& flag) {
  if (flag) target = *flag;
}

Result<void> invalid(std::string_view flag, std::string_view why) {
  return kube::fail(kube::ErrorCode::kInvalid, "--{}: {}", flag, why);
}

}  // namespace

void read_training_operator(StrictReader& reader, Configuration::TrainingOperator& config) {
  std::vector<std::string> schemes;
  reader.read("schemes", schemes);
  if (auto found = frameworks_of(schemes); !found) {
    reader.refuse("schemes", kube::Json::Array(schemes.begin(), schemes.end()), found.error());
  } else if (!schemes.empty()) {
    config.schemes = std::move(*found);
  }
  reader.read("only", config.only);
  if (config.only && schemes.empty())
    reader.add(kube::required(reader.path_of("schemes"), "with `only`, name kinds, or [all]"));
  v1::Settings& settings = config.settings;
  reader.read("gangSchedulerName", settings.gang_scheduler);
  reader.read("pytorchInitContainerImage", settings.init_container_image);
  reader.read("pytorchInitContainerMaxTries", settings.init_container_tries);
  reader.read("pytorchInitContainerTemplateFile", config.pytorchInitContainerTemplateFile);
  reader.read("mpiKubectlDeliveryImage", settings.kubectl_delivery_image);
  reader.read("customClusterDomain", settings.cluster_domain);
}

void set_training_operator_defaults(Configuration& configuration) {
  configuration.trainingOperator.only = true;
  configuration.trainingOperator.schemes = *v1::enabled_frameworks({});
  configuration.trainingOperator.pytorchInitContainerTemplateFile = kDefaultInitTemplate;
  configuration.leaderElection.leaderElect = false;
  configuration.leaderElection.resourceName = kTrainingOperatorLease;
  configuration.metrics.bindAddress = ":8080";
  configuration.metrics.secureServing = false;
  configuration.certManagement.webhookServiceName = "training-operator";
  configuration.certManagement.webhookSecretName = "training-operator-webhook-cert";
}

Result<void> use_training_operator_flags(const TrainingOperatorFlags& flags,
                                         Configuration& configuration) {
  Configuration::TrainingOperator& config = configuration.trainingOperator;
  if (!flags.schemes.empty()) {
    auto found = frameworks_of(flags.schemes);
    if (!found) return invalid("enable-scheme", found.error());
    config.schemes = std::move(*found);
  }
  use(config.settings.gang_scheduler, flags.gang_scheduler);
  use(config.settings.init_container_image, flags.init_container_image);
  use(config.settings.init_container_tries, flags.init_container_tries);
  use(config.settings.kubectl_delivery_image, flags.kubectl_delivery_image);
  use(config.pytorchInitContainerTemplateFile, flags.init_container_template_file);
  use(configuration.leaderElection.leaderElect, flags.leader_elect);
  use(configuration.leaderElection.resourceName, flags.lease);
  use(configuration.certManagement.webhookServiceName, flags.webhook_service);
  use(configuration.certManagement.webhookSecretName, flags.webhook_secret);
  use(configuration.webhook.port, flags.webhook_port);
  if (flags.marks_finished) configuration.marksFinishedJobs = true;
  if (flags.qps) configuration.clientConnection.qps = flags.qps;
  if (flags.burst) configuration.clientConnection.burst = flags.burst;
  const auto& certificates = configuration.certManagement;
  if (const auto why = kube::check_dns1035_label(certificates.webhookServiceName); !why.empty())
    return invalid("webhook-service-name", why);
  if (const auto why = kube::check_dns1123_subdomain(certificates.webhookSecretName); !why.empty())
    return invalid("webhook-secret-name", why);
  if (configuration.webhook.port < 1 || configuration.webhook.port > 65535)
    return invalid("webhook-server-port", "must be between 1 and 65535");
  if (configuration.leaderElection.resourceName.empty())
    return invalid("leader-election-id", "must name a Lease");
  // Upstream's workers mostly wait for the API server, and its default is one. A number below the
  // default of this program has no effect.
  for (const v1::Framework* each : config.schemes) {
    if (flags.threads > kDefaultWorkers)
      configuration.groupKindConcurrency[each->resource.kind + "." + each->resource.group] =
          *flags.threads;
  }
  return {};
}

}  // namespace trainer
