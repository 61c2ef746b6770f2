// trainer.kubeflow.org/v1alpha1 TrainJob. Members that the controller does not read stay Json.
// Member names equal those of the API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/run_policy.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer {

struct RuntimeRef {
  std::string name;
  std::optional<std::string> apiGroup;  // schema default "trainer.kubeflow.org"
  std::optional<std::string> kind;      // schema default "ClusterTrainingRuntime"
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

// This is the source of the dataset or of the model.
struct InitializerSource {
  std::optional<std::string> storageUri;
  std::vector<kube::Json> env;          // core/v1 EnvVar, as Json
  std::optional<kube::Json> secretRef;  // core/v1 LocalObjectReference
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct Initializer {
  std::optional<InitializerSource> dataset;
  std::optional<InitializerSource> model;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct Trainer {
  std::optional<std::string> image;
  std::optional<std::vector<std::string>> command;  // absent and [] differ
  std::optional<std::vector<std::string>> args;
  std::vector<kube::Json> env;  // core/v1 EnvVar, as Json
  std::optional<std::int32_t> numNodes;
  std::optional<kube::Json> resourcesPerNode;  // core/v1 ResourceRequirements
  std::optional<std::int32_t> numProcPerNode;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct RuntimePatch {
  std::string manager;
  std::optional<kube::Time> time;
  // The value {template: {metadata, spec: {replicatedJobs: [...]}}} is merged as Json. Its schema
  // is that of RuntimeSpecPatch.
  std::optional<kube::Json> trainingRuntimeSpec;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct TrainJobSpec {
  RuntimeRef runtimeRef;
  std::optional<Initializer> initializer;
  std::optional<Trainer> trainer;
  std::vector<RuntimePatch> runtimePatches;
  std::optional<bool> suspend;
  std::optional<std::int64_t> activeDeadlineSeconds;
  std::optional<std::string> managedBy;
  // Extensions.
  // The finished TrainJob is deleted after this time.
  std::optional<std::int32_t> ttlSecondsAfterFinished;
  std::optional<TrainJobFailurePolicy> failurePolicy;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

// A TrainJob's status can list this many replicated jobs.
inline constexpr std::size_t kMaxJobsStatus = 100;

struct JobStatus {
  std::string name;
  std::int32_t ready = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  std::int32_t active = 0;
  std::int32_t suspended = 0;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

struct Metric {
  std::string name;
  std::string value;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const Metric&, const Metric&) = default;
};

struct TrainerStatus {
  std::optional<std::int32_t> progressPercentage;
  std::optional<std::int32_t> estimatedRemainingSeconds;
  std::vector<Metric> metrics;
  std::optional<kube::Time> lastUpdatedTime;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const TrainerStatus&, const TrainerStatus&) = default;
};

// The counts are those of the training nodes, and of those that run. This is an extension, like all
// below.
struct NodesStatus {
  std::int32_t total = 0;
  std::int32_t ready = 0;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const NodesStatus&, const NodesStatus&) = default;

  // Returns "ready/total", which is written as `summary` for the column NODES: a printer column's
  // JSONPath reads one member only.
  std::string summary() const { return std::to_string(ready) + "/" + std::to_string(total); }
};

// This is the first pod that failed, kept after the pod is gone.
struct FirstFailure {
  std::string pod;
  std::string job;                    // the replicated job
  std::optional<std::int32_t> index;  // the node's index (job completion index)
  std::string node;                   // the machine
  std::string container;
  std::optional<std::int32_t> exitCode;
  std::optional<std::int32_t> signal;
  std::string reason;   // "Error", "OOMKilled", "Evicted", ...
  std::string message;  // the termination message or the last lines, 2 KB at most
  std::int32_t attempt = 0;
  std::optional<kube::Time> time;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const FirstFailure&, const FirstFailure&) = default;
};

// A rank that keeps the others waiting, or the first one to look at in a stalled job.
struct StallSuspect {
  std::int32_t rank = 0;
  std::string pod;
  std::string node;    // the machine
  std::string reason;  // stall::name_of(Rule): Stopped, Silent, Behind, NotWaiting and so on
  std::string line;    // "FILE:LINE FUNCTION", the innermost line of the user's code
  std::string where;   // "" for the main thread, else such as "worker process 71"
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const StallSuspect&, const StallSuspect&) = default;
};

// These ranks are at one line.
struct StallGroup {
  std::string line;
  std::int32_t count = 0;
  std::string ranks;  // "0-3, 7", at most some of them
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const StallGroup&, const StallGroup&) = default;
};

inline constexpr std::size_t kMaxStallSuspects = 16;
inline constexpr std::size_t kMaxStallGroups = 16;

// A training job runs and makes no step (docs/users/hangs.md).
struct StallStatus {
  std::optional<kube::Time> since;  // the last step of any rank
  std::string reason;               // by which rule the suspects were found
  std::string message;
  std::string summary;  // "stalled 12m (rank 5)", for the column PROGRESS
  std::vector<StallSuspect> suspects;
  std::vector<StallGroup> groups;
  std::int32_t world = 0;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const StallStatus&, const StallStatus&) = default;
};

// Hangs that ended the pods of a job (policy Restart, docs/users/hangs.md).
struct HangStatus {
  std::int32_t restarts = 0;  // the number of these hangs
  std::string jobUid;         // the Job that was ended at the last one
  std::int64_t step = 0;      // the last step before it
  std::int32_t repeats = 0;   // the number of hangs in a row at this step
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const HangStatus&, const HangStatus&) = default;
};

// A rank whose own work takes longer than that of the others: they wait for it at each step.
struct StragglerStatus {
  std::int32_t rank = 0;
  std::string pod;
  std::string node;   // the machine
  std::string times;  // "1.8": its own time of a step by the median of all ranks, when it was named
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const StragglerStatus&, const StragglerStatus&) = default;
};

inline constexpr std::size_t kMaxStragglers = 16;

// The time of a job by its use, in seconds until `since` (docs/users/goodput.md). From then
// on the member that `current` names grows.
struct GoodputStatus {
  std::int64_t productive = 0;  // steps that no earlier attempt has made
  std::int64_t queued = 0;      // waits for admission or for machines
  std::int64_t starting = 0;    // has machines and has made no step
  std::int64_t recomputed = 0;  // steps that an earlier attempt has made
  std::int64_t stalled = 0;     // no rank makes a step
  std::string current;          // "" once the job is finished
  std::optional<kube::Time> since;
  std::int64_t step = 0;        // the highest step of all attempts before this one
  std::int64_t checkpoint = 0;  // the step that an attempt begins with that loads a checkpoint
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const GoodputStatus&, const GoodputStatus&) = default;
};

// The number of nodes of the job may change between these while it runs. The subresource `scale`
// needs the selector: it selects the pods of the nodes.
struct ElasticStatus {
  std::int32_t minNodes = 1;
  std::int32_t maxNodes = 1;
  std::string selector;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const ElasticStatus&, const ElasticStatus&) = default;
};

struct TrainJobStatus {
  std::vector<kube::Condition> conditions;
  std::vector<JobStatus> jobsStatus;
  std::optional<TrainerStatus> trainerStatus;
  // These members are extensions.
  std::string phase;    // Queued, Initializing, Pending, Starting, Running, Restarting, Suspended,
                        // Complete, Failed
  std::string reason;   // CamelCase, why the job is in this phase
  std::string message;  // the reason as a sentence
  std::optional<NodesStatus> nodes;
  std::optional<ElasticStatus> elastic;
  std::int32_t restarts = 0;
  std::optional<std::int32_t> executionAttempts;
  std::string restartBudget;  // "1/3", see restart_budget(); "" if no failurePolicy asks for it
  std::optional<FirstFailure> firstFailure;
  std::optional<StallStatus> stall;
  std::optional<HangStatus> hangs;
  std::vector<StragglerStatus> stragglers;
  std::optional<GoodputStatus> goodput;
  // The processes that were started again in their pods, of all attempts; nullopt if no rank
  // reports.
  std::optional<std::int32_t> processRestarts;
  std::optional<kube::Time> startTime;
  std::optional<kube::Time> completionTime;
  // These are values of the runtime's runPolicy, for a job that does not say them.
  std::optional<std::int64_t> activeDeadlineSeconds;
  std::optional<std::int32_t> ttlSecondsAfterFinished;
  std::string runtimeSnapshotHash;  // SHA-256 of the snapshot's text, hex
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
  friend bool operator==(const TrainJobStatus&, const TrainJobStatus&) = default;
};

struct TrainJob {
  kube::ObjectMeta metadata;
  TrainJobSpec spec;
  TrainJobStatus status;
  template <class D>
  static void describe(D& d);

  bool is_suspended() const { return spec.suspend.value_or(false); }
  bool is_finished() const {
    return kube::is_condition_true(status.conditions, "Complete") ||
           kube::is_condition_true(status.conditions, "Failed");
  }
};

inline constexpr std::string_view kTrainerGroup = "trainer.kubeflow.org";
inline constexpr std::string_view kTrainJobController = "trainer.kubeflow.org/trainjob-controller";
// This is the manager of the patch into which podTemplateOverrides, podSpecOverrides, labels and
// annotations of a TrainJob of v2.0 or v2.1 are converted.
inline constexpr std::string_view kLegacyManager = "trainer.kubeflow.org/legacy";
inline constexpr std::string_view kMultiKueueController = "kueue.x-k8s.io/multikueue";

inline const kube::Resource kTrainJobs{"trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob",
                                       true};

}  // namespace trainer
