// jobset.x-k8s.io/v1alpha2. Members that the controller does not read stay Json.
// Member names equal those of the API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

struct DependsOn {
  std::string name;
  std::string status;  // "Ready" or "Complete"
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct ReplicatedJob {
  std::string name;
  std::optional<std::string> groupName;  // schema default "default"
  kube::Json template_;                  // batch/v1 JobTemplateSpec, as Json
  std::optional<std::int32_t> replicas;  // schema default 1
  std::vector<DependsOn> dependsOn;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);

  std::int32_t replica_count() const { return replicas.value_or(1); }
};

struct Network {
  std::optional<bool> enableDNSHostnames;
  std::optional<std::string> subdomain;
  std::optional<bool> publishNotReadyAddresses;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct SuccessPolicy {
  std::string operator_;  // "All" or "Any"
  std::vector<std::string> targetReplicatedJobs;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct FailurePolicyRule {
  std::string name;
  std::string action;
  std::vector<std::string> onJobFailureReasons;
  std::vector<std::string> onJobFailureMessagePatterns;
  std::vector<std::string> targetReplicatedJobs;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct FailurePolicy {
  std::optional<std::int32_t> maxRestarts;
  std::optional<std::string> restartStrategy;  // schema default "Recreate"
  std::vector<FailurePolicyRule> rules;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct StartupPolicy {
  std::string startupPolicyOrder;  // "AnyOrder" or "InOrder"
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct Coordinator {
  std::string replicatedJob;
  std::int32_t jobIndex = 0;
  std::int32_t podIndex = 0;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct RetentionPolicy {
  std::optional<std::string> whenDeleted;  // "Delete" (schema default) or "Retain"
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct VolumeClaimPolicy {
  std::vector<kube::Json> templates;  // PersistentVolumeClaims, as Json
  std::optional<RetentionPolicy> retentionPolicy;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct JobSetSpec {
  std::vector<ReplicatedJob> replicatedJobs;
  std::optional<Network> network;
  std::optional<SuccessPolicy> successPolicy;
  std::optional<FailurePolicy> failurePolicy;
  std::optional<StartupPolicy> startupPolicy;
  std::optional<bool> suspend;
  std::optional<Coordinator> coordinator;
  std::optional<std::string> managedBy;
  std::optional<std::int32_t> ttlSecondsAfterFinished;
  std::vector<VolumeClaimPolicy> volumeClaimPolicies;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

// At most this many Jobs of a replicated job have a place in jobRestarts.
inline constexpr std::int32_t kMaxJobRestarts = 1'024;

struct ReplicatedJobStatus {
  std::string name;
  std::int32_t ready = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  std::int32_t active = 0;
  std::int32_t suspended = 0;
  std::vector<std::int32_t> jobRestarts;
  std::vector<std::int32_t> jobRestartsCountTowardsMax;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct JobSetStatus {
  std::vector<kube::Condition> conditions;
  std::int32_t restarts = 0;
  std::int32_t restartsCountTowardsMax = 0;
  std::optional<std::int32_t> executionAttempts;  // see runtimes/jobset/execution_attempts.hh
  std::string terminalState;                      // "", "Completed" or "Failed"
  std::vector<ReplicatedJobStatus> replicatedJobsStatus;
  std::optional<std::int32_t> previousInPlaceRestartAttempt;
  std::optional<std::int32_t> currentInPlaceRestartAttempt;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

struct JobSet {
  kube::ObjectMeta metadata;
  JobSetSpec spec;
  JobSetStatus status;
  template <class D>
  static void describe(D& d);
};

inline const kube::Resource kJobSets{"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true};

}  // namespace trainer
