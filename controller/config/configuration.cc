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

void check_port(StrictReader& reader, std::string_view name, std::int32_t port) {
  if (port < 1 || port > 65535) reader.refuse(name, port, "must be between 1 and 65535");
}

// A burst belongs to a rate limit: without a limit it has no effect.
void check_limit(StrictReader& reader, const std::optional<double>& qps,
                 const std::optional<std::int32_t>& burst) {
  constexpr const char* kNegative = "must be greater than or equal to 0";
  if (qps.value_or(0) < 0) reader.refuse("qps", *qps, kNegative);
  if (burst.value_or(0) < 0) reader.refuse("burst", *burst, kNegative);
  if (burst.value_or(0) <= 0 || qps.value_or(0) > 0) return;
  reader.warn("burst", "{} has no effect without {}, for there is no limit then", *burst,
              reader.path_of("qps"));
}

// Checks server addresses: "0" switches the server off.
void check_bind_address(StrictReader& reader, std::string_view name, const std::string& address) {
  if (address == "0" || parse_endpoint(address)) return;
  reader.refuse(name, address, "must be \"HOST:PORT\", \":PORT\", or \"0\" for no server");
}

void read_webhook(StrictReader& reader, Configuration::Webhook& webhook) {
  reader.read("port", webhook.port);
  webhook.is_port_set = reader.has("port");
  reader.read("host", webhook.host);
  reader.read("exclusivePlacement", webhook.exclusivePlacement);
  reader.read("clientCAFile", webhook.clientCAFile);
  check_port(reader, "port", webhook.port);
}

void read_leader_election(StrictReader& reader, Configuration::LeaderElection& election) {
  std::string lock = "leases";
  reader.read("leaderElect", election.leaderElect);
  reader.read("leaseDuration", election.leaseDuration);
  reader.read("renewDeadline", election.renewDeadline);
  reader.read("retryPeriod", election.retryPeriod);
  reader.read("resourceLock", lock);
  reader.read("resourceName", election.resourceName);
  reader.read("resourceNamespace", election.resourceNamespace);
  if (!lock.empty() && lock != "leases")
    reader.refuse("resourceLock", lock, "only \"leases\" is supported: leave the field out");
  const auto lease = election.leaseDuration;
  const auto renew = election.renewDeadline;
  const auto retry = election.retryPeriod;
  if (retry.count() <= 0)
    reader.refuse("retryPeriod", fmt::format("{}ms", retry.count()), "must be longer than 0");
  if (lease <= renew || renew <= retry)
    reader.refuse(
        "leaseDuration", fmt::format("{}ms", lease.count()),
        "must be longer than renewDeadline ({}ms), and that longer than retryPeriod ({}ms)",
        renew.count(), retry.count());
  if (election.resourceName.empty())
    reader.add(
        kube::required(reader.path_of("resourceName"), "leave the field out, or name a Lease"));
}

void read_metrics(StrictReader& reader, Configuration::Metrics& metrics) {
  reader.read("bindAddress", metrics.bindAddress);
  reader.read("secureServing", metrics.secureServing);
  const auto read_auth = [&metrics](StrictReader& auth, bool& is_enabled) {
    auth.read("enabled", is_enabled);
    if (is_enabled && !metrics.secureServing)
      auth.refuse("enabled", true,
                  "needs metrics.secureServing: true, or tokens would be sent without encryption");
  };
  reader.object("auth", read_auth, metrics.auth.enabled);
  check_bind_address(reader, "bindAddress", metrics.bindAddress);
}

// Upstream accepts another name but serves the usual path, so such files are accepted here too.
void warn_of_other_endpoint(StrictReader& reader, std::string_view name, std::string_view served) {
  std::string value(served);
  reader.read(name, value);
  const std::string_view path = std::string_view(value).substr(value.starts_with('/') ? 1 : 0);
  if (path == served) return;
  reader.warn(name, "\"{}\" has no effect: the endpoint is /{}, let probes ask for that", value,
              served);
}

void read_health(StrictReader& reader, Configuration::Health& health) {
  reader.read("healthProbeBindAddress", health.healthProbeBindAddress);
  check_bind_address(reader, "healthProbeBindAddress", health.healthProbeBindAddress);
  warn_of_other_endpoint(reader, "readinessEndpointName", "readyz");
  warn_of_other_endpoint(reader, "livenessEndpointName", "healthz");
}

void read_concurrency(StrictReader& reader, Configuration& configuration) {
  reader.read_map("groupKindConcurrency",
                  [&](const std::string& kind, const Json& value, const std::string& name) {
                    if (!value.is_int())
                      return reader.refuse(name, value, "must be a whole number");
                    if (value.as_int() <= 0)
                      return reader.refuse(name, value, "must be greater than 0");
                    configuration.groupKindConcurrency[kind] =
                        static_cast<std::int32_t>(std::min<std::int64_t>(value.as_int(), 1'000));
                  });
}

void read_certificates(StrictReader& reader, Configuration::CertManagement& certificates) {
  reader.read("enable", certificates.enable);
  reader.read("webhookServiceName", certificates.webhookServiceName);
  reader.read("webhookSecretName", certificates.webhookSecretName);
  const std::string& service = certificates.webhookServiceName;
  if (std::string problem = kube::check_dns1035_label(service); !problem.empty())
    reader.refuse("webhookServiceName", service, "{}", problem);
  const std::string& secret = certificates.webhookSecretName;
  if (std::string problem = kube::check_dns1123_subdomain(secret); !problem.empty())
    reader.refuse("webhookSecretName", secret, "{}", problem);
}

void read_client(StrictReader& reader, Configuration::ClientConnection& client) {
  reader.read("qps", client.qps);
  reader.read("burst", client.burst);
  check_limit(reader, client.qps, client.burst);
}

void read_status_server(StrictReader& reader, Configuration::StatusServer& server) {
  reader.read("enabled", server.enabled);
  reader.read("port", server.port);
  reader.read("qps", server.qps);
  reader.read("burst", server.burst);
  check_port(reader, "port", server.port);
  check_limit(reader, server.qps, server.burst);
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
      reader.warn("cipherSuites", "\"{}\" is not known here; it is left out", name);
    } else if (cipher->empty()) {
      has_tls13 = true;
    } else {
      tls.cipherSuites.push_back(*cipher);
      if (name.find("_ECDHE_") == std::string::npos || name.ends_with("_CBC_SHA256"))
        reader.warn("cipherSuites", "\"{}\" is not secure", name);
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
    reader.warn("minVersion", "\"{}\" is not offered here (choose \"1.2\" or \"1.3\"); 1.2 is used",
                version);
  }
  read_cipher_suites(reader, tls);
  if (std::find(protocols.begin(), protocols.end(), "h2") != protocols.end())
    reader.warn("nextProtos", "HTTP/2 is not served; clients use http/1.1");
}

void read_jobset_controller(StrictReader& reader, Configuration::JobSetControllerConfig& config) {
  std::string mode(name_of(config.mode));
  reader.read("mode", mode);
  reader.read("upstreamNamespaces", config.upstreamNamespaces);
  std::size_t i = 0;
  for (const std::string& ns : config.upstreamNamespaces) {
    const std::string name = kube::join_index("upstreamNamespaces", i++);
    if (std::string problem = kube::check_dns1123_label(ns); !problem.empty())
      reader.refuse(name, ns, "{}", problem);
  }
  if (const auto parsed = parse_jobset_controller_mode(mode)) {
    config.mode = *parsed;
  } else {
    reader.refuse("mode", mode, "must be Auto, Own, Share or Off");
  }
}

// Checks names of extended resources, "DOMAIN/NAME", in which "*" is any text and "?" any
// character.
void check_device_names(StrictReader& reader, std::string_view list,
                        const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string plain = names[i];
    std::replace_if(
        plain.begin(), plain.end(), [](char c) { return c == '*' || c == '?'; }, 'x');
    if (plain.find('/') == plain.npos || !kube::qualified_name_problems(plain).empty())
      reader.refuse(kube::join_index(list, i), names[i],
                    "must be the name of an extended resource, such as example.com/device; \"*\" "
                    "stands for any text");
  }
}

void read_devices(StrictReader& reader, pipeline::DeviceRules& devices) {
  reader.read("counted", devices.counted);
  reader.read("ignored", devices.ignored);
  check_device_names(reader, "counted", devices.counted);
  check_device_names(reader, "ignored", devices.ignored);
}

GateSettings read_gates(StrictReader& root) {
  GateSettings gates;
  root.read_map("featureGates",
                [&](const std::string& gate, const Json& value, const std::string& name) {
                  if (!value.is_bool()) return root.refuse(name, value, "must be true or false");
                  gates[gate] = value.as_bool();
                });
  return gates;
}

// Reads a member that may have one value only.
void read_fixed(StrictReader& root, std::string_view name, std::string_view desired) {
  std::string value;
  root.read(name, value);
  if (value != desired) root.refuse(name, value, "must be \"{}\"", desired);
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
  root.object("devices", read_devices, configuration.devices);
  root.read("watchNamespace", configuration.watchNamespace);
  root.read("namespaced", configuration.namespaced);
  root.read("clusterDomain", configuration.clusterDomain);
  root.read("removeLegacyFinalizers", configuration.removeLegacyFinalizers);
  root.read("marksFinishedJobs", configuration.marksFinishedJobs);
  GateSettings gates = read_gates(root);
  root.finish();
  return gates;
}

}  // namespace

std::int32_t Configuration::concurrency_of(std::string_view kind_and_group,
                                           std::int32_t otherwise) const {
  const auto at = groupKindConcurrency.find(kind_and_group);
  return at == groupKindConcurrency.end() ? otherwise : at->second;
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
