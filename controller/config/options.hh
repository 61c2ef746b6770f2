// What the command line of `trainer controller` says. Everything else stands in the configuration
// file (configuration.hh).
#pragma once

#include <optional>
#include <string>

namespace trainer {

// Whose JobSets this process turns into Jobs (docs/decisions/0002).
enum class JobSetControllerMode {
  kAuto,   // kShare while the upstream JobSet controller holds its Lease, else kOwn; followed
           // continuously
  kOwn,    // every JobSet that names no other controller
  kShare,  // only the JobSets of our TrainJobs
  kOff,    // none: something else expands them
};

enum class LogFormat { kText, kJson };

// An option left at its default says nothing: the configuration file decides, or its default.
struct ControllerOptions {
  std::string kubeconfig;     // empty: $KUBECONFIG, in-cluster, ~/.kube/config
  std::string context;        // empty: the kubeconfig's current context
  std::string config_file;    // empty: all defaults
  std::string webhook_url;    // "https://HOST:PORT": serve admission from outside the cluster
  std::string feature_gates;  // "TrainJobStatus=true,AllAlpha=false"; wins over the file
  std::string ns;  // where Lease and certificates live; empty: the pod's, else kubeflow-system
  std::string log_level = "info";  // debug, info, warn, error
  LogFormat log_format = LogFormat::kText;
  std::optional<JobSetControllerMode> expander;
  std::optional<std::string> health_address;   // "HOST:PORT", ":PORT" or "0" for none
  std::optional<std::string> metrics_address;  // likewise
  // Without certificates and webhooks: the same rules then run in the reconciler alone.
  bool no_webhooks = false;
};

}  // namespace trainer
