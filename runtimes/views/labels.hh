// Jobs and pods are recognised by these labels and annotations (JobSet,
// api/jobset/v1alpha2/jobset_types.go). Pure.
#pragma once

#include <string_view>

#include "kube/model/meta.hh"

namespace trainer {

// A pod's index in its Job is an annotation, and since Kubernetes 1.28 also a label.
inline constexpr std::string_view kCompletionIndexKey = "batch.kubernetes.io/job-completion-index";

// An extension: pods carry the threshold of their job in seconds (plugins/reporter).
inline constexpr std::string_view kHangPolicyKey = "trainer.kubeflow.org/hang-policy";
inline constexpr std::string_view kHangThresholdKey = "trainer.kubeflow.org/hang-threshold-seconds";

// Kueue starts jobs with this label.
inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";
// Returns the queue of a job with these labels; "" without one.
inline std::string_view queue_of(const kube::StringMap& labels) {
  const auto queue = labels.find(kQueueLabel);
  return queue == labels.end() ? std::string_view() : std::string_view(queue->second);
}

// Pods and Services of kubeflow.org/v1 jobs have these labels (Training Operator, common_types.go).
inline constexpr std::string_view kV1OperatorNameKey = "training.kubeflow.org/operator-name";
inline constexpr std::string_view kV1JobNameKey = "training.kubeflow.org/job-name";
inline constexpr std::string_view kV1ReplicaTypeKey = "training.kubeflow.org/replica-type";
inline constexpr std::string_view kV1ReplicaIndexKey = "training.kubeflow.org/replica-index";
inline constexpr std::string_view kV1JobRoleKey = "training.kubeflow.org/job-role";

namespace jobset {

// An owner reference to a JobSet has these values.
inline constexpr std::string_view kApiVersion = "jobset.x-k8s.io/v1alpha2";
inline constexpr std::string_view kKind = "JobSet";

// These are both labels and annotations, on Jobs and on their pod templates, unless said otherwise.
inline constexpr std::string_view kJobSetNameKey = "jobset.sigs.k8s.io/jobset-name";
inline constexpr std::string_view kJobSetUidKey = "jobset.sigs.k8s.io/jobset-uid";
inline constexpr std::string_view kReplicatedJobNameKey = "jobset.sigs.k8s.io/replicatedjob-name";
inline constexpr std::string_view kReplicatedJobReplicasKey =
    "jobset.sigs.k8s.io/replicatedjob-replicas";
inline constexpr std::string_view kGlobalReplicasKey = "jobset.sigs.k8s.io/global-replicas";
inline constexpr std::string_view kJobIndexKey = "jobset.sigs.k8s.io/job-index";
inline constexpr std::string_view kJobGlobalIndexKey = "jobset.sigs.k8s.io/job-global-index";
inline constexpr std::string_view kJobKeyKey = "jobset.sigs.k8s.io/job-key";
inline constexpr std::string_view kGroupNameKey = "jobset.sigs.k8s.io/group-name";
inline constexpr std::string_view kGroupReplicasKey = "jobset.sigs.k8s.io/group-replicas";
inline constexpr std::string_view kJobGroupIndexKey = "jobset.sigs.k8s.io/job-group-index";
inline constexpr std::string_view kRestartAttemptKey = "jobset.sigs.k8s.io/restart-attempt";
inline constexpr std::string_view kJobRestartAttemptKey = "jobset.sigs.k8s.io/job-restart-attempt";
// A pod template that has this annotation asks for it (jobset/execution_attempts.hh).
inline constexpr std::string_view kExecutionAttemptKey = "jobset.sigs.k8s.io/execution-attempt";
inline constexpr std::string_view kCoordinatorKey = "jobset.sigs.k8s.io/coordinator";
inline constexpr std::string_view kPriorityKey = "jobset.sigs.k8s.io/priority";  // pod label only
// Users write these annotations.
inline constexpr std::string_view kExclusiveTopologyKey =
    "alpha.jobset.sigs.k8s.io/exclusive-topology";
inline constexpr std::string_view kNodeSelectorKey = "alpha.jobset.sigs.k8s.io/node-selector";
// The node selector strategy uses these: a node's label and taint.
inline constexpr std::string_view kNamespacedJobKey = "alpha.jobset.sigs.k8s.io/namespaced-job";
inline constexpr std::string_view kNoScheduleKey = "alpha.jobset.sigs.k8s.io/no-schedule";
// The in-place restart agent writes this pod annotation.
inline constexpr std::string_view kInPlaceRestartAttemptKey =
    "jobset.sigs.k8s.io/in-place-restart-attempt";
// These annotations of a JobSet are extensions of this controller: see jobset/disruption.hh, and
// jobset/restart.cc for the names of replicated jobs, separated by commas.
inline constexpr std::string_view kMaxDisruptionRestartsKey =
    "trainer.kubeflow.org/max-disruption-restarts";
// "MIN:MAX" (jobset/elastic.hh).
inline constexpr std::string_view kElasticNodesKey = "trainer.kubeflow.org/elastic-nodes";
inline constexpr std::string_view kKeptOnRestartKey = "trainer.kubeflow.org/kept-on-restart";

}  // namespace jobset
}  // namespace trainer
