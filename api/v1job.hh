// The API kubeflow.org/v1 has PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob and MPIJob of the
// Training Operator, and kubeflow.org/v2beta1 has MPIJob of mpi-operator. One struct holds the
// members of the specs of all kinds; those of other kinds are absent. Pod templates stay Json.
// Member names equal those of the API.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/trainjob.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer::v1 {

struct ReplicaSpec {
  std::optional<std::int32_t> replicas;
  kube::Json template_;       // PodTemplateSpec, as Json
  std::string restartPolicy;  // Always, OnFailure, Never or ExitCode; any text is admitted
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct SchedulingPolicy {
  std::optional<std::int32_t> minAvailable;
  std::string queue;
  std::optional<kube::Json> minResources;  // core/v1 ResourceList
  std::string priorityClass;
  std::optional<std::int32_t> scheduleTimeoutSeconds;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct RunPolicy {
  std::optional<std::string> cleanPodPolicy;
  std::optional<std::int32_t> ttlSecondsAfterFinished;
  std::optional<std::int64_t> activeDeadlineSeconds;
  std::optional<std::int32_t> backoffLimit;
  std::optional<bool> suspend;
  std::optional<std::string> managedBy;
  std::optional<SchedulingPolicy> schedulingPolicy;
  std::string queue;  // an extension: guides name it; counts as schedulingPolicy.queue
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct RendezvousOption {
  std::string key;
  std::string value;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

// This is PyTorchJob's; PaddleJob has minReplicas, maxReplicas, maxRestarts and metrics of it.
struct ElasticPolicy {
  std::optional<std::int32_t> minReplicas;
  std::optional<std::int32_t> maxReplicas;
  std::optional<std::string> rdzvBackend;
  std::optional<std::int32_t> rdzvPort;
  std::optional<std::string> rdzvHost;
  std::optional<std::string> rdzvId;
  std::vector<RendezvousOption> rdzvConf;
  std::optional<bool> standalone;
  std::optional<std::int32_t> nProcPerNode;  // deprecated
  std::optional<std::int32_t> maxRestarts;
  std::optional<std::vector<kube::Json>> metrics;  // autoscaling/v2 MetricSpec
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

using ReplicaSpecs = std::map<std::string, ReplicaSpec, std::less<>>;

struct JobSpec {
  RunPolicy runPolicy;
  ReplicaSpecs replicaSpecs;       // by role; its member has another name in each kind
  bool has_replica_specs = false;  // the member exists, perhaps without roles
  std::optional<ElasticPolicy> elasticPolicy;
  std::optional<std::string> nprocPerNode;     // PyTorchJob
  std::string successPolicy;                   // TFJob
  bool enableDynamicWorker = false;            // TFJob
  std::optional<std::int32_t> slotsPerWorker;  // MPIJob
  std::string mainContainer;                   // MPIJob v1
  std::optional<std::string> cleanPodPolicy;   // MPIJob v1; runPolicy's goes first
  std::optional<bool> runLauncherAsWorker;     // MPIJob v2beta1
  std::string sshAuthMountPath;                // MPIJob v2beta1
  std::string launcherCreationPolicy;          // MPIJob v2beta1
  std::string mpiImplementation;               // MPIJob v2beta1
  kube::Json unknown;
  // Describes all members except replicaSpecs. A kind's schema is described with its CRD
  // (api/kinds).
  template <class D>
  static void describe(D& d);
};

struct JobCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  std::optional<kube::Time> lastUpdateTime;
  std::optional<kube::Time> lastTransitionTime;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  bool is_true() const { return status == "True"; }
  friend bool operator==(const JobCondition&, const JobCondition&) = default;
};

struct ReplicaStatus {
  std::int32_t active = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  kube::Json labelSelector;  // deprecated; the Training Operator wrote it before 1.7
  std::string selector;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const ReplicaStatus&, const ReplicaStatus&) = default;
};

using ReplicaStatuses = std::map<std::string, ReplicaStatus, std::less<>>;

struct JobStatus {
  std::vector<JobCondition> conditions;
  std::optional<ReplicaStatuses> replicaStatuses;
  std::optional<kube::Time> startTime;
  std::optional<kube::Time> completionTime;
  std::optional<kube::Time> lastReconcileTime;
  // These members are extensions. `restarts` counts restarts of pods that are gone, which count
  // towards backoffLimit; it is only kept if a limit is set. `restartedPods` has the uids of pods
  // that `restarts` counts already, and that are not gone yet.
  std::int32_t restarts = 0;
  std::vector<std::string> restartedPods;
  std::optional<FirstFailure> firstFailure;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const JobStatus&, const JobStatus&) = default;

  // Returns the first condition of this type; nullptr if there is none.
  const JobCondition* find(std::string_view type) const;
  JobCondition* find(std::string_view type);
  bool is_true(std::string_view type) const;
  // Copies the times of conditions that are otherwise as in `before`.
  void keep_times(const JobStatus& before);
};

struct V1Job {
  kube::ObjectMeta metadata;
  JobSpec spec;
  JobStatus status;

  bool is_suspended() const { return spec.runPolicy.suspend.value_or(false); }
};

inline constexpr std::string_view kManager = "kubeflow.org/training-operator";

// Reads a whole object. `replica_specs` is the member of its spec that holds the roles
// ("pytorchReplicaSpecs"). Errors are all type errors found, each with its path.
tl::expected<V1Job, kube::FieldErrors> read_job(const kube::Json& object,
                                                std::string_view replica_specs);
kube::Json write(const JobStatus& status);

}  // namespace trainer::v1
