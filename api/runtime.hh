// trainer.kubeflow.org/v1alpha1 TrainingRuntime and ClusterTrainingRuntime.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/int_or_string.hh"
#include "api/jobset.hh"
#include "api/run_policy.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

struct EnvInjectionTarget {
  std::string jobName;
  std::vector<std::string> containerNames;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct EnvInjection {
  std::vector<EnvInjectionTarget> targets;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

// The number of nodes may change while a job runs (docs/users/elastic.md). The names are those of
// Trainer v2.1, whose v2.2 removed them.
struct TorchElasticPolicy {
  std::optional<std::int32_t> minNodes;
  std::optional<std::int32_t> maxNodes;
  std::optional<std::int32_t> maxRestarts;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct TorchPolicy {
  std::optional<TorchElasticPolicy> elasticPolicy;
  std::optional<IntOrString> numProcPerNode;  // an extension: "auto", "gpu" or "cpu"
  std::optional<std::string> launcher;        // an extension: "torchrun" or "env"
  std::optional<EnvInjection> envInjection;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct MpiPolicy {
  std::optional<std::int32_t> numProcPerNode;    // schema default 1
  std::optional<std::string> mpiImplementation;  // schema default "OpenMPI"
  std::optional<std::string> sshAuthMountPath;   // schema default "/root/.ssh"
  std::optional<bool> runLauncherAsNode;         // schema default false
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct FluxPolicy {
  std::optional<std::int32_t> numProcPerNode;  // schema default 1
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

// A policy without settings of its own: jax, xgboost.
struct EmptyPolicy {
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct MlPolicy {
  std::optional<std::int32_t> numNodes;
  std::optional<TorchPolicy> torch;
  std::optional<MpiPolicy> mpi;
  std::optional<EmptyPolicy> jax;
  std::optional<EmptyPolicy> xgboost;
  std::optional<FluxPolicy> flux;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct CoschedulingPolicy {
  std::optional<std::int32_t> scheduleTimeoutSeconds;  // schema default 60
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct NetworkTopology {
  std::optional<std::string> mode;                 // schema default "hard"
  std::optional<std::int32_t> highestTierAllowed;  // schema default 1
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct VolcanoPolicy {
  std::optional<NetworkTopology> networkTopology;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct PodGroupPolicy {
  std::optional<CoschedulingPolicy> coscheduling;
  std::optional<VolcanoPolicy> volcano;
  std::optional<EmptyPolicy> workload;  // an extension
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct JobSetTemplate {
  std::optional<kube::Json> metadata;  // labels and annotations for the JobSet
  std::optional<JobSetSpec> spec;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct TrainingRuntimeSpec {
  std::optional<MlPolicy> mlPolicy;
  std::optional<PodGroupPolicy> podGroupPolicy;
  std::optional<RunPolicy> runPolicy;  // an extension
  std::optional<JobSetTemplate> template_;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

// This is a runtime of either kind: `kind` says which.
struct Runtime {
  std::string kind;  // "TrainingRuntime" or "ClusterTrainingRuntime"
  kube::ObjectMeta metadata;
  TrainingRuntimeSpec spec;
  template <class D>
  static void describe(D& d);
};

inline const kube::Resource kTrainingRuntimes{"trainer.kubeflow.org", "v1alpha1",
                                              "trainingruntimes", "TrainingRuntime", true};
inline const kube::Resource kClusterTrainingRuntimes{
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", false};

inline constexpr std::string_view kAncestorLabel = "trainer.kubeflow.org/trainjob-ancestor-step";
// Returns the value of this label, "" without: it says which step of a TrainJob the job runs.
inline std::string_view ancestor_of(const ReplicatedJob& job) {
  return job.template_.get_path({"metadata", "labels"}).get_string(kAncestorLabel);
}
inline constexpr std::string_view kSupportLabel = "trainer.kubeflow.org/support";
inline constexpr std::string_view kFrameworkLabel = "trainer.kubeflow.org/framework";

}  // namespace trainer
