#include "controller/config/configuration.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "controller/config/strict_reader.hh"
#include "controller/config/values.hh"
#include "kube/client/tls.hh"
#include "kube/model/names.hh"
#include "kube/model/yaml.hh"

namespace trainer {
namespace {

using kube::FieldErrors;
using kube::Json;

constexpr std::string_view kApiVersion = "config.trainer.kubeflow.org/v1alpha1";
constexpr std::string_view kKind = "Configuration";

constexpr std::array<std::string_view, 4> kReconciledKinds = {
    "TrainJob.trainer.kubeflow.org", "TrainingRuntime.trainer.kubeflow.org",
    "ClusterTrainingRuntime.trainer.kubeflow.org", "JobSet.jobset.x-k8s.io"};

// Collects errors (the file is refused) and settings without effect (a warning each).
struct Findings {
  FieldErrors errors;
  std::vector<std::string> warnings;
};

void check_port(const StrictReader& reader, std::string_view name, std::int32_t port,
                FieldErrors& errors) {
  if (port >= 1 && port <= 65535) return;
  errors.push_back(kube::invalid(reader.path_of(name), port, "must be between 1 and 65535"));
}

template <class Number>
void check_not_negative(const StrictReader& reader, std::string_view name, Number value,
                        FieldErrors& errors) {
  if (value >= 0) return;
  errors.push_back(
      kube::invalid(reader.path_of(name), value, "must be greater than or equal to 0"));
}

// A burst belongs to a rate limit: without a limit it has no effect.
void warn_of_lone_burst(const StrictReader& reader, const std::optional<double>& qps,
                        const std::optional<std::int32_t>& burst, Findings& findings) {
  if (burst.value_or(0) <= 0 || qps.value_or(0) > 0) return;
  findings.warnings.push_back(
      fmt::format("{}: {} has no effect without {}, for there is no limit then",
                  reader.path_of("burst"), *burst, reader.path_of("qps")));
}

// Server addresses: "0" switches the server off.
void check_bind_address(const StrictReader& reader, std::string_view name,
                        const std::string& address, FieldErrors& errors) {
  if (address == "0" || parse_endpoint(address)) return;
  errors.push_back(kube::invalid(reader.path_of(name), address,
                                 "must be \"HOST:PORT\", \":PORT\", or \"0\" for no server"));
}

void read_webhook(StrictReader reader, Configuration::Webhook& webhook, Findings& findings) {
  reader.read("port", webhook.port);
  webhook.is_port_set = reader.has("port");
  reader.read("host", webhook.host);
  reader.read("exclusivePlacement", webhook.exclusivePlacement);
  reader.read("clientCAFile", webhook.clientCAFile);
  check_port(reader, "port", webhook.port, findings.errors);
  reader.finish();
}

void read_leader_election(StrictReader reader, Configuration::LeaderElection& election,
                          Findings& findings) {
  std::string lock = "leases";
  reader.read("leaderElect", election.leaderElect);
  reader.read("leaseDuration", election.leaseDuration);
  reader.read("renewDeadline", election.renewDeadline);
  reader.read("retryPeriod", election.retryPeriod);
  reader.read("resourceLock", lock);
  reader.read("resourceName", election.resourceName);
  reader.read("resourceNamespace", election.resourceNamespace);
  if (!lock.empty() && lock != "leases") {
    findings.errors.push_back(kube::invalid(reader.path_of("resourceLock"), lock,
                                            "only \"leases\" is supported: leave the field out"));
  }
  if (election.retryPeriod.count() <= 0) {
    findings.errors.push_back(kube::invalid(reader.path_of("retryPeriod"),
                                            fmt::format("{}ms", election.retryPeriod.count()),
                                            "must be longer than 0"));
  }
  if (election.leaseDuration <= election.renewDeadline ||
      election.renewDeadline <= election.retryPeriod) {
    findings.errors.push_back(kube::invalid(
        reader.path_of("leaseDuration"), fmt::format("{}ms", election.leaseDuration.count()),
        fmt::format(
            "must be longer than renewDeadline ({}ms), and that longer than retryPeriod ({}ms)",
            election.renewDeadline.count(), election.retryPeriod.count())));
  }
  if (election.resourceName.empty()) {
    findings.errors.push_back(
        kube::required(reader.path_of("resourceName"), "leave the field out, or name a Lease"));
  }
  reader.finish();
}

void read_metrics(StrictReader reader, Configuration::Metrics& metrics, Findings& findings) {
  reader.read("bindAddress", metrics.bindAddress);
  reader.read("secureServing", metrics.secureServing);
  StrictReader auth = reader.object("auth");
  auth.read("enabled", metrics.auth.enabled);
  if (metrics.auth.enabled && !metrics.secureServing) {
    findings.errors.push_back(kube::invalid(
        auth.path_of("enabled"), true,
        "needs metrics.secureServing: true, or tokens would be sent without encryption"));
  }
  auth.finish();
  check_bind_address(reader, "bindAddress", metrics.bindAddress, findings.errors);
  reader.finish();
}

// Upstream accepts another name but serves the usual path, so such files are accepted here too.
void warn_of_other_endpoint(StrictReader& reader, std::string_view name, std::string_view served,
                            Findings& findings) {
  std::string value(served);
  reader.read(name, value);
  const std::string_view path = std::string_view(value).substr(value.starts_with('/') ? 1 : 0);
  if (path == served) return;
  findings.warnings.push_back(
      fmt::format("{}: \"{}\" has no effect: the endpoint is /{}, let probes ask for that",
                  reader.path_of(name), value, served));
}

void read_health(StrictReader reader, Configuration::Health& health, Findings& findings) {
  reader.read("healthProbeBindAddress", health.healthProbeBindAddress);
  check_bind_address(reader, "healthProbeBindAddress", health.healthProbeBindAddress,
                     findings.errors);
  warn_of_other_endpoint(reader, "readinessEndpointName", "readyz", findings);
  warn_of_other_endpoint(reader, "livenessEndpointName", "healthz", findings);
  reader.finish();
}

void read_concurrency(StrictReader reader, Configuration& configuration, Findings& findings) {
  reader.read_map("groupKindConcurrency", [&](const std::string& kind, const Json& value,
                                              const std::string& path) {
    if (!value.is_int()) {
      findings.errors.push_back(kube::invalid(path, value, "must be a whole number"));
      return;
    }
    if (value.as_int() <= 0) {
      findings.errors.push_back(kube::invalid(path, value, "must be greater than 0"));
      return;
    }
    if (std::find(kReconciledKinds.begin(), kReconciledKinds.end(), kind) ==
        kReconciledKinds.end()) {
      findings.warnings.push_back(fmt::format(
          "{}: nothing of this kind is reconciled here; the setting has no effect", path));
    }
    configuration.groupKindConcurrency[kind] =
        static_cast<std::int32_t>(std::min<std::int64_t>(value.as_int(), 1'000));
  });
  reader.finish();
}

void read_certificates(StrictReader reader, Configuration::CertManagement& certificates,
                       Findings& findings) {
  reader.read("enable", certificates.enable);
  reader.read("webhookServiceName", certificates.webhookServiceName);
  reader.read("webhookSecretName", certificates.webhookSecretName);
  const std::string service = kube::check_dns1035_label(certificates.webhookServiceName);
  if (!service.empty()) {
    findings.errors.push_back(kube::invalid(reader.path_of("webhookServiceName"),
                                            certificates.webhookServiceName, service));
  }
  const std::string secret = kube::check_dns1123_subdomain(certificates.webhookSecretName);
  if (!secret.empty()) {
    findings.errors.push_back(
        kube::invalid(reader.path_of("webhookSecretName"), certificates.webhookSecretName, secret));
  }
  reader.finish();
}

void read_client(StrictReader reader, Configuration::ClientConnection& client, Findings& findings) {
  reader.read("qps", client.qps);
  reader.read("burst", client.burst);
  check_not_negative(reader, "qps", client.qps.value_or(0), findings.errors);
  check_not_negative(reader, "burst", client.burst.value_or(0), findings.errors);
  warn_of_lone_burst(reader, client.qps, client.burst, findings);
  reader.finish();
}

void read_status_server(StrictReader reader, Configuration::StatusServer& server,
                        Findings& findings) {
  reader.read("enabled", server.enabled);
  reader.read("port", server.port);
  reader.read("qps", server.qps);
  reader.read("burst", server.burst);
  check_port(reader, "port", server.port, findings.errors);
  check_not_negative(reader, "qps", server.qps.value_or(0), findings.errors);
  check_not_negative(reader, "burst", server.burst.value_or(0), findings.errors);
  warn_of_lone_burst(reader, server.qps, server.burst, findings);
  reader.finish();
}

// Upstream warns of names that it does not know, and uses its defaults where it knows none. As in
// Go, the suites of TLS 1.3 cannot be chosen, and a list of them alone leaves no TLS 1.2.
void read_cipher_suites(StrictReader& reader, Configuration::Tls& tls, Findings& findings) {
  std::vector<std::string> names;
  reader.read("cipherSuites", names);
  bool has_tls13 = false;
  for (const std::string& name : names) {
    const auto cipher = kube::openssl_cipher(name);
    if (!cipher) {
      findings.warnings.push_back(fmt::format("{}: \"{}\" is not known here; it is left out",
                                              reader.path_of("cipherSuites"), name));
    } else if (cipher->empty()) {
      has_tls13 = true;
    } else {
      tls.cipherSuites.push_back(*cipher);
      if (name.find("_ECDHE_") == std::string::npos || name.ends_with("_CBC_SHA256")) {
        findings.warnings.push_back(
            fmt::format("{}: \"{}\" is not secure", reader.path_of("cipherSuites"), name));
      }
    }
  }
  if (has_tls13 && tls.cipherSuites.empty()) tls.minVersion = "1.3";
}

void read_tls(StrictReader reader, Configuration::Tls& tls, Findings& findings) {
  std::string version = tls.minVersion;
  std::vector<std::string> protocols;
  reader.read("minVersion", version);
  reader.read("nextProtos", protocols);
  if (version == "1.2" || version == "1.3") {
    tls.minVersion = version;
  } else {
    // Upstream warns and uses its default, so such files are accepted here too.
    findings.warnings.push_back(
        fmt::format("{}: \"{}\" is not offered here (choose \"1.2\" or \"1.3\"); 1.2 is used",
                    reader.path_of("minVersion"), version));
  }
  read_cipher_suites(reader, tls, findings);
  if (std::find(protocols.begin(), protocols.end(), "h2") != protocols.end()) {
    findings.warnings.push_back(fmt::format("{}: HTTP/2 is not served; clients use http/1.1",
                                            reader.path_of("nextProtos")));
  }
  reader.finish();
}

void read_jobset_controller(StrictReader reader, Configuration::JobSetControllerConfig& config,
                            Findings& findings) {
  std::string mode(name_of(config.mode));
  reader.read("mode", mode);
  reader.read("upstreamNamespaces", config.upstreamNamespaces);
  std::size_t i = 0;
  for (const std::string& ns : config.upstreamNamespaces) {
    const std::string path = kube::join_index(reader.path_of("upstreamNamespaces"), i++);
    const std::string problem = kube::check_dns1123_label(ns);
    if (!problem.empty()) findings.errors.push_back(kube::invalid(path, ns, problem));
  }
  if (const auto parsed = parse_jobset_controller_mode(mode)) {
    config.mode = *parsed;
  } else {
    findings.errors.push_back(
        kube::invalid(reader.path_of("mode"), mode, "must be Auto, Own, Share or Off"));
  }
  reader.finish();
}

GateSettings read_gates(StrictReader& root, Findings& findings) {
  GateSettings gates;
  root.read_map("featureGates",
                [&](const std::string& name, const Json& value, const std::string& path) {
                  if (value.is_bool()) {
                    gates[name] = value.as_bool();
                  } else {
                    findings.errors.push_back(kube::invalid(path, value, "must be true or false"));
                  }
                });
  return gates;
}

void read_type(StrictReader& root, Findings& findings) {
  std::string api_version;
  std::string kind;
  root.read("apiVersion", api_version);
  root.read("kind", kind);
  if (api_version != kApiVersion) {
    findings.errors.push_back(
        kube::invalid("apiVersion", api_version, fmt::format("must be \"{}\"", kApiVersion)));
  }
  if (kind != kKind) {
    findings.errors.push_back(kube::invalid("kind", kind, fmt::format("must be \"{}\"", kKind)));
  }
}

GateSettings read_all(const Json& document, Configuration& configuration, Findings& findings) {
  StrictReader root(&document, "", findings.errors);
  read_type(root, findings);
  read_webhook(root.object("webhook"), configuration.webhook, findings);
  read_leader_election(root.object("leaderElection"), configuration.leaderElection, findings);
  read_metrics(root.object("metrics"), configuration.metrics, findings);
  read_health(root.object("health"), configuration.health, findings);
  read_concurrency(root.object("controller"), configuration, findings);
  read_certificates(root.object("certManagement"), configuration.certManagement, findings);
  read_client(root.object("clientConnection"), configuration.clientConnection, findings);
  read_status_server(root.object("statusServer"), configuration.statusServer, findings);
  read_tls(root.object("tls"), configuration.tls, findings);
  read_jobset_controller(root.object("expander"), configuration.jobsetController, findings);
  root.read("clusterDomain", configuration.clusterDomain);
  root.read("removeLegacyFinalizers", configuration.removeLegacyFinalizers);
  GateSettings gates = read_gates(root, findings);
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
  switch (mode) {
    case JobSetControllerMode::kAuto:
      return "Auto";
    case JobSetControllerMode::kOwn:
      return "Own";
    case JobSetControllerMode::kShare:
      return "Share";
    case JobSetControllerMode::kOff:
      return "Off";
  }
  return "";
}

std::optional<JobSetControllerMode> parse_jobset_controller_mode(std::string_view text) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (const auto mode : {JobSetControllerMode::kAuto, JobSetControllerMode::kOwn,
                          JobSetControllerMode::kShare, JobSetControllerMode::kOff}) {
    const std::string_view name = name_of(mode);
    if (std::equal(name.begin(), name.end(), text.begin(), text.end(), same)) return mode;
  }
  return std::nullopt;
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
