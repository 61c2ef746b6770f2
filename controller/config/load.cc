// The configuration is read from files here.

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "controller/config/configuration.hh"
#include "controller/config/training_operator.hh"
#include "controller/config/values.hh"

namespace trainer {
namespace {

constexpr const char* kPodNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return std::nullopt;
  return std::move(text).str();
}

kube::Result<void> set_address(std::string& target, const std::optional<std::string>& flag,
                               std::string_view name) {
  if (!flag) return {};
  if (*flag != "0" && !parse_endpoint(*flag)) {
    return kube::fail(kube::ErrorCode::kInvalid,
                      "--{}: \"{}\" is no address: write HOST:PORT, :PORT, or 0 for none", name,
                      *flag);
  }
  target = *flag;
  return {};
}

// A file without a certificate would allow every client, so it is refused.
kube::Result<void> read_client_ca(Configuration::Webhook& webhook, const std::string& flag) {
  if (!flag.empty()) webhook.clientCAFile = flag;
  if (webhook.clientCAFile.empty()) return {};
  webhook.client_ca_pem = read_file(webhook.clientCAFile).value_or("");
  if (webhook.client_ca_pem.find("-----BEGIN CERTIFICATE-----") != std::string::npos) return {};
  return kube::fail(
      kube::ErrorCode::kInvalid, "{} {}: the file cannot be read, or has no certificate in PEM",
      flag.empty() ? "webhook.clientCAFile" : "--webhook-client-ca", webhook.clientCAFile);
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

kube::Result<void> read_init_template(Configuration::TrainingOperator& config) {
  const std::string& path = config.pytorchInitContainerTemplateFile;
  if (path.empty()) return {};
  auto text = read_file(path);
  if (!text && path == kDefaultInitTemplate) return {};
  const std::string why =
      text ? v1::pytorch::check_init_template(*text) : std::string("the file cannot be read");
  if (!why.empty())
    return kube::fail(kube::ErrorCode::kInvalid, "pytorchInitContainerTemplateFile {}: {}", path,
                      why);
  config.settings.init_container_template = std::move(*text);
  return {};
}

kube::Result<void> configure_training_operator(const ControllerOptions& options,
                                               Configuration& configuration) {
  Configuration::TrainingOperator& config = configuration.trainingOperator;
  if (options.training_operator.is_manager) {
    set_training_operator_defaults(configuration);
    configuration.watchNamespace =
        options.ns.empty() ? environment("KUBEFLOW_NAMESPACE") : options.ns;
  }
  if (config.settings.cluster_domain.empty())
    config.settings.cluster_domain = environment("CUSTOM_CLUSTER_DOMAIN");
  auto used = use_training_operator_flags(options.training_operator, configuration);
  return used ? read_init_template(config) : used;
}

}  // namespace

kube::Result<ParsedConfiguration> load_configuration(const ControllerOptions& options) {
  std::string text;
  if (!options.config_file.empty()) {
    auto read = read_file(options.config_file);
    if (!read) {
      return kube::fail(kube::ErrorCode::kNotFound, "--config {}: the file cannot be read",
                        options.config_file);
    }
    if (read->find_first_not_of(" \t\r\n") == std::string::npos) {
      return kube::fail(kube::ErrorCode::kParse, "--config {}: the file is empty",
                        options.config_file);
    }
    text = std::move(*read);
  }
  auto parsed = parse_configuration(text, options.feature_gates);
  if (!parsed) {
    return options.config_file.empty()
               ? parsed
               : tl::unexpected(parsed.error().at("--config " + options.config_file));
  }
  Configuration& configuration = parsed->configuration;
  if (configuration.namespaced && configuration.watchNamespace.empty())
    configuration.watchNamespace = controller_namespace(options);
  if (options.jobset_controller_mode)
    configuration.jobsetController.mode = *options.jobset_controller_mode;
  if (options.mpi_operator.is_enabled) configuration.mpiOperator.enabled = true;
  if (options.mpi_operator.gang_scheduler)
    configuration.mpiOperator.settings.gang_scheduler = *options.mpi_operator.gang_scheduler;
  auto set = configure_training_operator(options, configuration);
  if (set)
    set = set_address(configuration.health.healthProbeBindAddress, options.health_address,
                      "health-address");
  if (set)
    set =
        set_address(configuration.metrics.bindAddress, options.metrics_address, "metrics-address");
  if (set) set = read_client_ca(configuration.webhook, options.webhook_client_ca);
  if (!set) return tl::unexpected(set.error());
  return parsed;
}

std::string controller_namespace(const ControllerOptions& options) {
  const bool is_manager = options.training_operator.is_manager;
  auto ns = is_manager ? environment("MY_POD_NAMESPACE") : options.ns;
  if (!ns.empty()) return ns;
  ns = read_file(kPodNamespaceFile).value_or("");
  while (!ns.empty() && (ns.back() == '\n' || ns.back() == ' ')) ns.pop_back();
  if (!ns.empty()) return ns;
  return is_manager ? "kubeflow" : "kubeflow-system";
}

}  // namespace trainer
