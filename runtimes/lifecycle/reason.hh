// A reason says why a job of any kind waits or has failed: there is one value for each reason of a
// status. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kube/model/unreadable.hh"

namespace trainer {

struct Reason {
  enum class Meaning : std::uint8_t {
    kProgress,  // the job goes on as usual
    kProblem,   // a person may have to act
  };
  // A controller finds out in this way that the reason no longer holds.
  enum class Recheck : std::uint8_t {
    kByWatch,    // a watch or the next read of events shows it
    kSlowly,     // nothing shows it, so that the job is planned again at an interval
    kByReading,  // the same, and the objects that plans read by name are read again
  };

  std::string_view name;         // in status.reason, in conditions, and as a label of metrics
  std::string_view advice = {};  // the action of the job's owner that helps; "" if there is none
  Recheck recheck = Recheck::kByWatch;
  Meaning meaning = Meaning::kProblem;

  constexpr operator std::string_view() const { return name; }  // NOLINT(*-explicit-*)
};

namespace reasons {

constexpr Reason progress(std::string_view name, std::string_view advice = {}) {
  return {name, advice, Reason::Recheck::kByWatch, Reason::Meaning::kProgress};
}

// ---- nothing is wrong
inline constexpr Reason kCreatingPods = progress("CreatingPods");
inline constexpr Reason kScheduling = progress("Scheduling");
inline constexpr Reason kStartingContainers = progress("StartingContainers");
inline constexpr Reason kWaitingForQuota =
    progress("WaitingForQuota", "Kueue decides when it starts: see `kubectl get workloads`.");
inline constexpr Reason kSuspended =
    progress("Suspended", "Set spec.suspend to false to start it.");
inline constexpr Reason kInitializersRunning = progress("InitializersRunning");
inline constexpr Reason kNodesReplaced = progress("NodesReplaced");
inline constexpr Reason kWaitingForDeletion = progress("WaitingForDeletion");
inline constexpr Reason kNodesReady = progress("NodesReady");
inline constexpr Reason kNodesNotReady = progress("NodesNotReady");

// ---- pods wait
inline constexpr Reason kUnschedulable{
    "Unschedulable",
    "Compare resourcesPerNode, nodeSelector and tolerations with what the cluster's machines "
    "offer, or wait for capacity."};
inline constexpr Reason kGangNotReady{
    "GangNotReady",
    "The scheduler starts all pods together: it waits until there is room for every one of them."};
inline constexpr Reason kSchedulingGated{
    "SchedulingGated",
    "A controller holds the pods by a scheduling gate and removes it when their place is "
    "decided."};
inline constexpr Reason kPodsWaiting{"PodsWaiting"};
inline constexpr Reason kImagePullFailed{
    "ImagePullFailed",
    "Check the image's name and tag, and imagePullSecrets for a private registry."};
inline constexpr Reason kConfigMissing{
    "ConfigMissing",
    "Create the ConfigMap or Secret that the message names; the pods go on by themselves."};
inline constexpr Reason kVolumeMissing{
    "VolumeMissing",
    "Create the claim, Secret or ConfigMap that the message names; the pods go on by themselves."};
inline constexpr Reason kContainerStartFailed{
    "ContainerStartFailed",
    "The container could not be started: check its command, mounts and security context."};
inline constexpr Reason kContainersCrashing{
    "ContainersCrashing", "The container starts and fails again: its output says why."};

// ---- a child is refused
inline constexpr Reason kQuotaExceeded{
    "QuotaExceeded",
    "A ResourceQuota of the namespace is used up: free some of it, or ask for less."};
inline constexpr Reason kPodsRefused{
    "PodsRefused", "The API server or a webhook refused the pods: change what the message names."};
inline constexpr Reason kJobsRefused{
    "JobsRefused", "The API server or a webhook refused the Jobs: change what the message names."};
inline constexpr Reason kServicesRefused{
    "ServicesRefused",
    "The API server or a webhook refused the Service, so the pods do not find each other: change "
    "what the message names."};
inline constexpr Reason kClaimsRefused{
    "ClaimsRefused",
    "The API server or a webhook refused the claims: change what the message names."};
inline constexpr Reason kChildRefused{"ChildRefused",
                                      "Change what the message names in the job or its runtime."};
inline constexpr Reason kJobSetNameTaken{
    "JobSetNameTaken", "Delete the JobSet of that name, or create the TrainJob under another.",
    Reason::Recheck::kSlowly};
inline constexpr Reason kChildNameTaken{
    "ChildNameTaken", "Delete the object of that name, or create the job under another.",
    Reason::Recheck::kByReading};
inline constexpr Reason kChildMissing{
    "ChildMissing", "Delete the JobSet that the message names: it is made again with all it needs.",
    Reason::Recheck::kByReading};

// ---- the job cannot be built
inline constexpr Reason kRuntimeNotFound{
    "RuntimeNotFound", "Create the runtime, or name an existing one in a new TrainJob.",
    Reason::Recheck::kSlowly};
inline constexpr Reason kRuntimeSnapshotInvalid{
    "RuntimeSnapshotInvalid",
    "Put the snapshot ConfigMap back as it was, or delete it to have it written again.",
    Reason::Recheck::kByReading};
inline constexpr Reason kRuntimeSnapshotLost{
    "RuntimeSnapshotLost",
    "Put the runtime back as it was when the job started, or create the TrainJob anew.",
    Reason::Recheck::kByReading};
inline constexpr Reason kUnreadable{kube::kUnreadable};

// ---- the job runs
inline constexpr Reason kNodeFailed{"NodeFailed"};
inline constexpr Reason kStalled{
    "Stalled",
    "Look at the line that the message names, and at its process. To go on from the last "
    "checkpoint, delete the pod. If no rank is named, look at the network between the nodes."};

// All reasons that status.reason of a job has which has not ended.
inline constexpr std::array kAll{kCreatingPods,        kScheduling,
                                 kStartingContainers,  kWaitingForQuota,
                                 kSuspended,           kInitializersRunning,
                                 kNodesReplaced,       kWaitingForDeletion,
                                 kUnschedulable,       kGangNotReady,
                                 kSchedulingGated,     kPodsWaiting,
                                 kImagePullFailed,     kConfigMissing,
                                 kVolumeMissing,       kContainerStartFailed,
                                 kContainersCrashing,  kQuotaExceeded,
                                 kPodsRefused,         kJobsRefused,
                                 kServicesRefused,     kClaimsRefused,
                                 kChildRefused,        kJobSetNameTaken,
                                 kChildNameTaken,      kChildMissing,
                                 kRuntimeNotFound,     kRuntimeSnapshotInvalid,
                                 kRuntimeSnapshotLost, kUnreadable,
                                 kNodesReady,          kNodesNotReady,
                                 kNodeFailed,          kStalled};

// ---- a job has failed
inline constexpr Reason kDeadlineExceeded{"DeadlineExceeded"};
inline constexpr Reason kRuntimeNotSupported{"TrainingRuntimeNotSupported"};
inline constexpr Reason kFailedJobs{"FailedJobs"};
inline constexpr Reason kReachedMaxRestarts{"ReachedMaxRestarts"};
inline constexpr Reason kFailJobSet{"FailJobSetFailurePolicyAction"};
inline constexpr Reason kBackoffLimitExceeded{"BackoffLimitExceeded"};
inline constexpr Reason kPodsFailed{"PodsFailed"};
inline constexpr Reason kProcessesKeepFailing{"ProcessesKeepFailing"};

// A word that is no value of this file, in metrics.
inline constexpr Reason kOther{"Other"};

}  // namespace reasons

// Returns the value of this name; nullptr for a name that is none of reasons::kAll.
constexpr const Reason* find_reason(std::string_view name) {
  for (const Reason& each : reasons::kAll)
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace trainer
