#include "controller/config/configuration.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/predicate.hpp>

#include "controller/config/strict_reader.hh"
#include "controller/config/training_operator.hh"
#include "controller/config/values.hh"
#include "kube/client/tls.hh"
#include "kube/model/names.hh"
#include "kube/model/yaml.hh"

namespace trainer {
namespace {

using kube::Json;

// The names are in the order of JobSetControllerMode.
constexpr std::array<std::string_view, 4> kModes = {"Auto", "Own", "Share", "Off"};

std::string check_port(std::int32_t port) {
  return port < 1 || port > 65535 ? "must be between 1 and 65535" : "";
}

// Checks server addresses: "0" switches the server off.
std::string check_bind_address(const std::string& address) {
  return address == "0" || parse_endpoint(address)
             ? ""
             : "must be \"HOST:PORT\", \":PORT\", or \"0\" for no server";
}

// A burst belongs to a rate limit: without a limit it has no effect.
void read_limit(StrictReader& reader, std::optional<double>& qps,
                std::optional<std::int32_t>& burst) {
  const auto check = [](const auto& number) {
    return number.value_or(0) < 0 ? "must be greater than or equal to 0" : "";
  };
  reader.read("qps", qps, check);
  reader.read("burst", burst, check);
  if (burst.value_or(0) > 0 && qps.value_or(0) <= 0)
    reader.warn("burst", fmt::format("{} has no effect without {}, for there is no limit then",
                                     *burst, reader.path_of("qps")));
}

void read_webhook(StrictReader& reader, Configuration::Webhook& webhook) {
  reader.read("port", webhook.port, check_port);
  webhook.is_port_set = reader.has("port");
  reader.read("host", webhook.host);
  reader.read("exclusivePlacement", webhook.exclusivePlacement);
  reader.read("clientCAFile", webhook.clientCAFile);
}

void read_leader_election(StrictReader& reader, Configuration::LeaderElection& election) {
  std::string lock = "leases";
  reader.read("leaderElect", election.leaderElect);
  reader.read("leaseDuration", election.leaseDuration);
  reader.read("renewDeadline", election.renewDeadline);
  reader.read("retryPeriod", election.retryPeriod);
  reader.read("resourceLock", lock, [](const std::string& name) {
    return name.empty() || name == "leases" ? ""
                                            : "only \"leases\" is supported: leave the field out";
  });
  reader.read("resourceName", election.resourceName);
  reader.read("resourceNamespace", election.resourceNamespace);
  const auto lease = election.leaseDuration;
  const auto renew = election.renewDeadline;
  const auto retry = election.retryPeriod;
  if (retry.count() <= 0)
    reader.refuse("retryPeriod", fmt::format("{}ms", retry.count()), "must be longer than 0");
  if (lease <= renew || renew <= retry)
    reader.refuse("leaseDuration", fmt::format("{}ms", lease.count()),
                  fmt::format("must be longer than renewDeadline ({}ms), and that longer than "
                              "retryPeriod ({}ms)",
                              renew.count(), retry.count()));
  if (election.resourceName.empty())
    reader.add(
        kube::required(reader.path_of("resourceName"), "leave the field out, or name a Lease"));
}

void read_metrics(StrictReader& reader, Configuration::Metrics& metrics) {
  reader.read("bindAddress", metrics.bindAddress, check_bind_address);
  reader.read("secureServing", metrics.secureServing);
  const auto read_auth = [&metrics](StrictReader& auth, bool& is_enabled) {
    auth.read("enabled", is_enabled);
    if (is_enabled && !metrics.secureServing)
      auth.refuse("enabled", true,
                  "needs metrics.secureServing: true, or tokens would be sent without encryption");
  };
  reader.object("auth", read_auth, metrics.auth.enabled);
}

// Upstream accepts another name but serves the usual path, so such files are accepted here too.
void warn_of_other_endpoint(StrictReader& reader, std::string_view name, std::string_view served) {
  std::string value(served);
  reader.read(name, value);
  const std::string_view path = std::string_view(value).substr(value.starts_with('/') ? 1 : 0);
  if (path == served) return;
  reader.warn(
      name, fmt::format("\"{}\" has no effect: the endpoint is /{}, let probes ask for that", value,
                        served));
}

void read_health(StrictReader& reader, Configuration::Health& health) {
  reader.read("healthProbeBindAddress", health.healthProbeBindAddress, check_bind_address);
  warn_of_other_endpoint(reader, "readinessEndpointName", "readyz");
  warn_of_other_endpoint(reader, "livenessEndpointName", "healthz");
}

void read_concurrency(StrictReader& reader, Configuration& configuration) {
  reader.read_map(
      "groupKindConcurrency", configuration.groupKindConcurrency,
      [](std::int32_t workers) { return workers <= 0 ? "must be greater than 0" : ""; });
}

void read_certificates(StrictReader& reader, Configuration::CertManagement& certificates) {
  reader.read("enable", certificates.enable);
  reader.read("webhookServiceName", certificates.webhookServiceName, kube::check_dns1035_label);
  reader.read("webhookSecretName", certificates.webhookSecretName, kube::check_dns1123_subdomain);
}

void read_client(StrictReader& reader, Configuration::ClientConnection& client) {
  read_limit(reader, client.qps, client.burst);
}

void read_status_server(StrictReader& reader, Configuration::StatusServer& server) {
  reader.read("enabled", server.enabled);
  reader.read("port", server.port, check_port);
  read_limit(reader, server.qps, server.burst);
}

// Upstream warns about names that it does not know, and uses its defaults if it knows none. The
// suites of TLS 1.3 cannot be chosen, like in Go, and a list of them alone leaves no TLS 1.2.
void read_cipher_suites(StrictReader& reader, Configuration::Tls& tls) {
  std::vector<std::string> names;
  reader.read("cipherSuites", names);
  bool has_tls13 = false;
  for (const std::string& name : names) {
    const auto cipher = kube::openssl_cipher(name);
    if (!cipher) {
      reader.warn("cipherSuites", fmt::format("\"{}\" is not known here; it is left out", name));
    } else if (cipher->empty()) {
      has_tls13 = true;
    } else {
      tls.cipherSuites.push_back(*cipher);
      if (name.find("_ECDHE_") == std::string::npos || name.ends_with("_CBC_SHA256"))
        reader.warn("cipherSuites", fmt::format("\"{}\" is not secure", name));
    }
  }
  if (has_tls13 && tls.cipherSuites.empty()) tls.minVersion = "1.3";
}

void read_tls(StrictReader& reader, Configuration::Tls& tls) {
  std::string version = tls.minVersion;
  std::vector<std::string> protocols;
  reader.read("minVersion", version);
  reader.read("nextProtos", protocols);
  if (version == "1.2" || version == "1.3") {
    tls.minVersion = version;
  } else {
    // Upstream warns and uses its default, so such files are accepted here too.
    reader.warn("minVersion",
                fmt::format("\"{}\" is not offered here (choose \"1.2\" or \"1.3\"); 1.2 is used",
                            version));
  }
  read_cipher_suites(reader, tls);
  if (std::find(protocols.begin(), protocols.end(), "h2") != protocols.end())
    reader.warn("nextProtos", "HTTP/2 is not served; clients use http/1.1");
}

void read_jobset_controller(StrictReader& reader, Configuration::JobSetControllerConfig& config) {
  std::string mode(name_of(config.mode));
  reader.read("mode", mode, [&config](const std::string& text) {
    const auto parsed = parse_jobset_controller_mode(text);
    config.mode = parsed.value_or(config.mode);
    return parsed ? "" : "must be Auto, Own, Share or Off";
  });
  reader.read("upstreamNamespaces", config.upstreamNamespaces, kube::check_dns1123_label);
}

void read_mpi_operator(StrictReader& reader, Configuration::MPIOperator& config) {
  reader.read("enabled", config.enabled);
  reader.read("only", config.only);
  if (config.only && !config.enabled)
    reader.add(kube::required(reader.path_of("enabled"), "with `only`, it must be true"));
  reader.read("upstreamNamespaces", config.upstreamNamespaces, kube::check_dns1123_label);
  reader.read("gangSchedulerName", config.settings.gang_scheduler);
  reader.read("clusterDomain", config.settings.cluster_domain);
}

// Checks names of extended resources, "DOMAIN/NAME", in which "*" is any text and "?" any
// character.
std::string check_device_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '*' || c == '?'; }, 'x');
  if (name.find('/') != name.npos && kube::qualified_name_problems(name).empty()) return {};
  return "must be the name of an extended resource, such as example.com/device; \"*\" stands for "
         "any text";
}

void read_devices(StrictReader& reader, pipeline::DeviceRules& devices) {
  reader.read("counted", devices.counted, check_device_name);
  reader.read("ignored", devices.ignored, check_device_name);
}

// Reads a member that may have one value only.
void read_fixed(StrictReader& root, std::string_view name, std::string_view desired) {
  std::string value;
  root.read(name, value);
  if (value != desired) root.refuse(name, value, fmt::format("must be \"{}\"", desired));
}

GateSettings read_all(const Json& document, Configuration& configuration, Findings& findings) {
  StrictReader root(&document, "", findings);
  read_fixed(root, "apiVersion", "config.trainer.kubeflow.org/v1alpha1");
  read_fixed(root, "kind", "Configuration");
  root.object("webhook", read_webhook, configuration.webhook);
  root.object("leaderElection", read_leader_election, configuration.leaderElection);
  root.object("metrics", read_metrics, configuration.metrics);
  root.object("health", read_health, configuration.health);
  root.object("controller", read_concurrency, configuration);
  root.object("certManagement", read_certificates, configuration.certManagement);
  root.object("clientConnection", read_client, configuration.clientConnection);
  root.object("statusServer", read_status_server, configuration.statusServer);
  root.object("tls", read_tls, configuration.tls);
  root.object("expander", read_jobset_controller, configuration.jobsetController);
  root.object("trainingOperator", read_training_operator, configuration.trainingOperator);
  root.object("mpiOperator", read_mpi_operator, configuration.mpiOperator);
  root.object("devices", read_devices, configuration.devices);
  root.read("watchNamespace", configuration.watchNamespace);
  root.read("namespaced", configuration.namespaced);
  root.read("clusterDomain", configuration.clusterDomain);
  root.read("removeLegacyFinalizers", configuration.removeLegacyFinalizers);
  root.read("marksFinishedJobs", configuration.marksFinishedJobs);
  GateSettings gates;
  root.read_map("featureGates", gates);
  root.finish();
  return gates;
}

}  // namespace

std::int32_t Configuration::concurrency_of(std::string_view kind_and_group,
                                           std::int32_t otherwise) const {
  const auto at = groupKindConcurrency.find(kind_and_group);
  return at == groupKindConcurrency.end() ? otherwise : std::min(at->second, 1'000);
}

std::string_view name_of(JobSetControllerMode mode) {
  return kModes[static_cast<std::size_t>(mode)];
}

std::optional<JobSetControllerMode> parse_jobset_controller_mode(std::string_view text) {
  const auto at = std::find_if(kModes.begin(), kModes.end(), [text](std::string_view name) {
    return boost::algorithm::iequals(name, text);
  });
  if (at == kModes.end()) return std::nullopt;
  return static_cast<JobSetControllerMode>(at - kModes.begin());
}

kube::Result<ParsedConfiguration> parse_configuration(std::string_view yaml,
                                                      std::string_view gate_flag) {
  ParsedConfiguration parsed;
  Findings findings;
  GateSettings file_gates;
  if (!yaml.empty()) {
    const auto document = kube::parse_yaml(yaml);
    if (!document) return tl::unexpected(document.error());
    file_gates = read_all(*document, parsed.configuration, findings);
  }
  if (!findings.errors.empty()) {
    return kube::fail(kube::ErrorCode::kInvalid,
                      "invalid configuration: " + kube::to_string(findings.errors));
  }
  const auto flag_gates = parse_gate_flag(gate_flag);
  if (!flag_gates) return tl::unexpected(flag_gates.error());
  const auto gates = resolve_gates(file_gates, *flag_gates);
  if (!gates) return tl::unexpected(gates.error());
  parsed.configuration.featureGates = *gates;
  parsed.warnings = std::move(findings.warnings);
  return parsed;
}

}  // namespace trainer
