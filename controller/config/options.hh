// These are the command line options of `trainer controller`. All other settings are in the
// configuration file (configuration.hh).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/manager/log.hh"

namespace trainer {

// The mode says for which JobSets this process creates Jobs (docs/decisions/0002).
enum class JobSetControllerMode {
  kAuto,   // kShare while the upstream JobSet controller holds its Lease, else kOwn
  kOwn,    // every JobSet that names no other controller
  kShare,  // only the JobSets of this controller's TrainJobs
  kOff,    // none: another controller reconciles them
};

using LogFormat = kube::Log::Format;

// These are the flags of the Training Operator's manager (Training Operator,
// cmd/training-operator.v1), for V1 jobs.
struct TrainingOperatorFlags {
  // The program was started by the name "manager", like upstream's: it reconciles V1 jobs alone,
  // with upstream's defaults.
  bool is_manager = false;
  std::vector<std::string> schemes;  // kinds in any case, or "all"
  std::optional<std::string> gang_scheduler;
  std::optional<std::string> init_container_image;
  std::optional<std::string> init_container_template_file;
  std::optional<std::int32_t> init_container_tries;
  std::optional<std::string> kubectl_delivery_image;
  std::optional<std::int32_t> threads;
  bool marks_finished = false;  // marksFinishedJobs, if there is no configuration file
  std::optional<double> qps;
  std::optional<std::int32_t> burst;
  std::optional<bool> leader_elect;
  std::optional<std::string> lease;
  std::optional<std::int32_t> webhook_port;
  std::optional<std::string> webhook_service;
  std::optional<std::string> webhook_secret;
};

// These are flags of this program for MPIJobs of v2beta1.
struct MPIOperatorFlags {
  bool is_enabled = false;
  std::optional<std::string> gang_scheduler;
};

// If an option has its default, the configuration file decides.
struct ControllerOptions {
  std::string kubeconfig;         // empty: $KUBECONFIG, in-cluster, ~/.kube/config
  std::string context;            // empty: the kubeconfig's current context
  std::string config_file;        // empty: all defaults
  std::string webhook_url;        // "https://HOST:PORT": serve admission from outside the cluster
  std::string webhook_client_ca;  // a file of PEM certificates; empty: the file decides
  std::string feature_gates;      // "TrainJobStatus=true,AllAlpha=false"; wins over the file
  // This is the namespace of the Lease and the certificates; if it is empty, the pod's, else
  // kubeflow-system. If TrainingOperatorFlags::is_manager, it is the namespace that is watched;
  // empty: all.
  std::string ns;
  std::string log_level = "info";  // debug, info, warn, error
  LogFormat log_format = LogFormat::kText;
  std::optional<JobSetControllerMode> jobset_controller_mode;
  std::optional<std::string> health_address;   // "HOST:PORT", ":PORT" or "0" for none
  std::optional<std::string> metrics_address;  // the same forms
  // There are no certificates and no webhooks: only reconciles check objects.
  bool no_webhooks = false;
  TrainingOperatorFlags training_operator;
  MPIOperatorFlags mpi_operator;
};

}  // namespace trainer
