// This file says why an object of any kind waits: the words of status.reason, and advice about
// them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/model/plan.hh"
#include "runtimes/lifecycle/reason.hh"

namespace trainer {

// The condition of a JobSet or a V1 job of which a child is refused: a Job, pod, Service, claim or
// another object. The name is that of ReplicaSets (pkg/apis/apps, ReplicaSetReplicaFailure). It is
// removed when the child is accepted. A TrainJob has status.reason and status.message instead.
inline constexpr std::string_view kReplicaFailure = "ReplicaFailure";

// The reasons of the JobSet controller's events about children that it cannot create (JobSet,
// pkg/constants).
inline constexpr std::string_view kJobCreationFailed = "JobCreationFailed";
inline constexpr std::string_view kServiceCreationFailed = "HeadlessServiceCreationFailed";
inline constexpr std::string_view kClaimCreationFailed = "PVCCreationFailed";
// The reason of the kubelet's event about a volume that cannot be mounted.
inline constexpr std::string_view kMissingMount = "FailedMount";

struct WaitingCause {
  // CamelCase: Unschedulable, GangNotReady, ImagePullFailed, VolumeMissing, PodsRefused, ...
  std::string reason;
  std::string message;  // "2 pods: 0/3 nodes are available: ..."
};

// `reported` is the reason of a pod's state or of an event, such as "FailedScheduling".
const Reason& reason_of_report(std::string_view reported, std::string_view message);

// Returns the cause from the text of an event about an object that waits, "REASON: MESSAGE"
// ("FailedMount: MountVolume.SetUp failed ..."). The result is nullopt for "".
std::optional<WaitingCause> cause_of_event(std::string_view event);

// Returns whether such a text says that a controller could not create a pod, a Job or another
// child.
bool is_refusal_event(std::string_view event);

WaitingCause cause_of_refusal(const kube::Refusal& refusal);

// Returns the same word if it is a reason of cause_of_refusal(), or one of cause_of_event() for
// refused pods; "" for any other word. The result lives as long as the program.
std::string_view known_refusal(std::string_view reason);

// Returns what the owner of an object can do about a cause, in one or two sentences; "" if there is
// nothing to advise. If the message shows who refused, the advice is about that.
std::string_view advice_for(std::string_view reason, std::string_view message);

}  // namespace trainer
