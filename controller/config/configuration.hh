// This is the configuration file: `config.trainer.kubeflow.org/v1alpha1`, kind `Configuration`
// (Kubeflow Trainer, pkg/apis/config/v1alpha1 and pkg/config), plus fields that upstream does not
// have.
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
#include "runtimes/mpijob/settings.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/v1/framework.hh"

namespace trainer {

// The option of an installation of V1 jobs (KindRegistration::option), and the Lease of the
// Training Operator's manager.
inline constexpr const char* kTrainingOperatorOption = "v1";
inline constexpr const char* kTrainingOperatorLease = "1ca428e5.training-operator.kubeflow.org";

// Member names equal the names in the file, except jobsetController (`expander`) and
// TrainingOperator::settings. An absent file means a default-constructed value.
struct Configuration {
  struct Webhook {
    std::int32_t port = 9443;
    // The file sets the port. It is then used instead of the port of --webhook-url.
    bool is_port_set = false;
    std::string host;  // empty: all interfaces
    // Upstream does not have this. --webhook-url publishes the pod webhooks of exclusive placement
    // too. In a cluster, manifests/overlays/exclusive-placement installs them, and this has no
    // effect.
    bool exclusivePlacement = false;
    // Upstream does not have this. Only clients with a certificate that one of these CAs has signed
    // may send reviews; if it is empty, every client that reaches the port may.
    std::string clientCAFile;
    std::string client_ca_pem;  // the text of that file
  };
  // Upstream has no leader election without this block. Two processes must never reconcile at the
  // same time, so here an absent block means these values; `leaderElect: false` turns it off.
  struct LeaderElection {
    bool leaderElect = true;
    std::chrono::milliseconds leaseDuration{15'000};
    std::chrono::milliseconds renewDeadline{10'000};
    std::chrono::milliseconds retryPeriod{2'000};
    std::string resourceName = "trainer.kubeflow.org";
    std::string resourceNamespace;  // empty: the namespace in which the controller runs
  };
  struct Metrics {
    std::string bindAddress = ":8443";  // "0": no metrics server
    bool secureServing = true;
    struct Auth {
      bool enabled = false;
    };
    Auth auth;
  };
  struct Health {
    std::string healthProbeBindAddress = ":8081";  // "0": no health server
  };
  struct CertManagement {
    bool enable = true;
    std::string webhookServiceName = "kubeflow-trainer-controller-manager";
    std::string webhookSecretName = "kubeflow-trainer-webhook-cert";
  };
  // There is no limit unless the file sets one: the API server has its own flow control.
  struct ClientConnection {
    std::optional<double> qps;  // 0 means no limit; absent means the same
    std::optional<std::int32_t> burst;
  };
  struct StatusServer {
    bool enabled = false;  // not upstream's: runs also without the gate TrainJobStatus
    std::int32_t port = 10443;
    // This limits writes to the API server, after merging; there is no limit unless the file sets
    // one.
    std::optional<double> qps;
    std::optional<std::int32_t> burst;
  };
  struct Tls {
    std::string minVersion = "1.2";
    // The suites of TLS 1.2, by OpenSSL's names; empty: its defaults.
    std::vector<std::string> cipherSuites;
  };
  // Upstream does not have this.
  struct JobSetControllerConfig {
    JobSetControllerMode mode = JobSetControllerMode::kAuto;
    // The upstream JobSet controller's Lease is trusted in these namespaces, besides jobset-system,
    // the namespace of its webhooks and that of this process. A client that can create Leases in
    // one of them can switch kAuto to kShare.
    std::vector<std::string> upstreamNamespaces;
  };

  // Upstream does not have this block for V1 jobs.
  struct TrainingOperator {
    std::vector<const v1::Framework*> schemes;  // the kinds that are reconciled
    bool only = false;                          // no TrainJobs and no JobSets
    // This has gangSchedulerName, pytorchInitContainerImage, pytorchInitContainerMaxTries,
    // mpiKubectlDeliveryImage, customClusterDomain, and the text of
    // pytorchInitContainerTemplateFile.
    v1::Settings settings;
    std::string pytorchInitContainerTemplateFile;
  };

  // Upstream does not have this block for MPIJobs of kubeflow.org/v2beta1 (mpi-operator).
  struct MPIOperator {
    bool enabled = false;
    bool only = false;  // no other kinds
    // mpi-operator's Lease is trusted in these namespaces, besides mpi-operator and that of this
    // process.
    std::vector<std::string> upstreamNamespaces;
    mpijob::MPISettings settings;  // gangSchedulerName and clusterDomain
  };

  Webhook webhook;
  LeaderElection leaderElection;
  Metrics metrics;
  Health health;
  // The member of `controller`.
  std::map<std::string, std::int32_t, std::less<>> groupKindConcurrency;
  CertManagement certManagement;
  ClientConnection clientConnection;
  StatusServer statusServer;
  FeatureGates featureGates;
  Tls tls;
  JobSetControllerConfig jobsetController;
  TrainingOperator trainingOperator;
  MPIOperator mpiOperator;
  // Not upstream's: the namespace whose objects are reconciled; empty: all.
  std::string watchNamespace;
  // Upstream does not have this. The process has rights in `watchNamespace` only (empty: its own
  // namespace), by Roles: no webhooks, no ClusterTrainingRuntimes, no reads in other namespaces.
  bool namespaced = false;
  std::string clusterDomain = "cluster.local";  // not upstream's: the suffix of DNS names
  // Upstream does not have this. One process is started for each resource of some of these names,
  // and none for the others.
  pipeline::DeviceRules devices;
  // Upstream does not have this. It removes from runtimes the finalizer that v2.0 to v2.2 set: this
  // needs a right to patch them (manifests/overlays/legacy-finalizers).
  bool removeLegacyFinalizers = false;
  // Upstream does not have this. It marks finished jobs in their metadata, so that they do not run
  // again if a backup is restored. This needs a right to patch jobs
  // (manifests/overlays/finished-marker).
  bool marksFinishedJobs = false;

  // Returns how many objects of "Kind.group" are reconciled at a time.
  std::int32_t concurrency_of(std::string_view kind_and_group, std::int32_t otherwise) const;
};

struct ParsedConfiguration {
  Configuration configuration;
  std::vector<std::string> warnings;  // settings without effect here, each with its path
};

// Parsing is strict: unknown and duplicate fields and values of a wrong type are refused, and all
// errors are reported at once. `gate_flag` is the text of --feature-gates. Errors: kParse for a
// text that is no YAML, kInvalid "invalid configuration: ..." with every path.
kube::Result<ParsedConfiguration> parse_configuration(std::string_view yaml,
                                                      std::string_view gate_flag = {});

// Reads the file of `options`, overridden by the flags, and the files that it names. It is the only
// function here that reads files; its errors name the file.
kube::Result<ParsedConfiguration> load_configuration(const ControllerOptions& options);

// Returns `options.ns`, else the pod's service account namespace, else "kubeflow-system". If
// TrainingOperatorFlags::is_manager, it returns $MY_POD_NAMESPACE, else the service account's, else
// "kubeflow".
std::string controller_namespace(const ControllerOptions& options);

// Parses "Auto", "Own", "Share" or "Off" in any case.
std::optional<JobSetControllerMode> parse_jobset_controller_mode(std::string_view text);
std::string_view name_of(JobSetControllerMode mode);

}  // namespace trainer
