// The configuration file: `config.trainer.kubeflow.org/v1alpha1`, kind `Configuration`
// (trainer-contract 7.2, 7.3), plus fields of our own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/config/feature_gates.hh"
#include "controller/config/options.hh"
#include "kube/model/error.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

// Member names equal the names in the file. A default-constructed value is what an absent file
// means.
struct Configuration {
  struct Webhook {
    std::int32_t port = 9443;
    // By the file: then it is what --webhook-url listens on too, whatever port the URL has.
    bool is_port_set = false;
    std::string host;  // empty: all interfaces
    // Ours: --webhook-url makes the pod webhooks of exclusive placement too. In a cluster
    // manifests/overlays/exclusive-placement installs them, and this means nothing.
    bool exclusivePlacement = false;
  };
  // Upstream elects nobody without this block. Two processes that both reconcile are never wanted,
  // so here an absent block elects with these values; `leaderElect: false` turns the election off.
  struct LeaderElection {
    bool leaderElect = true;
    std::chrono::milliseconds leaseDuration{15'000};
    std::chrono::milliseconds renewDeadline{10'000};
    std::chrono::milliseconds retryPeriod{2'000};
    std::string resourceName = "trainer.kubeflow.org";
    std::string resourceNamespace;  // empty: the namespace the controller runs in
  };
  struct Metrics {
    std::string bindAddress = ":8443";  // "0": no metrics server
    bool secureServing = true;
  };
  struct Health {
    std::string healthProbeBindAddress = ":8081";  // "0": no health server
  };
  struct CertManagement {
    bool enable = true;
    std::string webhookServiceName = "kubeflow-trainer-controller-manager";
    std::string webhookSecretName = "kubeflow-trainer-webhook-cert";
  };
  // A limit stands only where the file sets one: the API server's own flow control is the default.
  struct ClientConnection {
    std::optional<double> qps;  // 0 means no limit, as absent does
    std::optional<std::int32_t> burst;
  };
  struct StatusServer {
    std::int32_t port = 10443;
    // Of writes to the API server, after reports have been merged; a limit stands only where the
    // file sets one.
    std::optional<double> qps;
    std::optional<std::int32_t> burst;
  };
  struct Tls {
    std::string minVersion = "1.2";
  };
  // Ours.
  struct JobSetControllerConfig {
    JobSetControllerMode mode = JobSetControllerMode::kAuto;
    // Where the upstream JobSet controller may hold its Lease; empty: anywhere. Whoever may create
    // Leases in one of them can make kAuto stand aside.
    std::vector<std::string> upstreamNamespaces;
  };

  Webhook webhook;
  LeaderElection leaderElection;
  Metrics metrics;
  Health health;
  std::map<std::string, std::int32_t, std::less<>>
      groupKindConcurrency;  // controller.groupKindConcurrency
  CertManagement certManagement;
  ClientConnection clientConnection;
  StatusServer statusServer;
  FeatureGates featureGates;
  Tls tls;
  JobSetControllerConfig expander;
  std::string clusterDomain = "cluster.local";  // ours: the suffix of the cluster's DNS names

  // How many objects of "Kind.group" are reconciled at a time.
  std::int32_t concurrency_of(std::string_view kind_and_group, std::int32_t otherwise) const;
};

struct ParsedConfiguration {
  Configuration configuration;
  std::vector<std::string>
      warnings;  // settings that are accepted but mean nothing here, each with its path
};

// Strict: unknown and duplicate fields and values of a wrong type are refused, and all errors are
// reported at once. `gate_flag` is the text of
// --feature-gates. Errors: kParse for no YAML, kInvalid "invalid configuration: ..." with every
// path.
kube::Result<ParsedConfiguration> parse_configuration(std::string_view yaml,
                                                      std::string_view gate_flag = {});

// The file of `options` with the flags' values put over it. The only function here that reads a
// file; its errors name it.
kube::Result<ParsedConfiguration> load_configuration(const ControllerOptions& options);

// `options.ns`, else the pod's service account namespace, else "kubeflow-system".
std::string controller_namespace(const ControllerOptions& options);

std::optional<JobSetControllerMode> parse_jobset_controller_mode(
    std::string_view text);  // "Auto", "Own", "Share", "Off", any case
std::string_view name_of(JobSetControllerMode mode);

}  // namespace trainer
