// This file says why an object of any kind waits: the words of status.reason, and advice about
// them. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/plan.hh"

namespace trainer {

// The condition of a JobSet or a V1 job of which a child is refused: a Job, pod, Service, claim or
// another object. The name is that of ReplicaSets (pkg/apis/apps, ReplicaSetReplicaFailure). It is
// removed when the child is accepted. A TrainJob has status.reason and status.message instead.
inline constexpr std::string_view kReplicaFailure = "ReplicaFailure";

// Pods may be missing, or wait, this long before the events about them are read; the events are
// then read at this interval. A user should see within fifteen seconds why a job does not come up.
inline constexpr std::chrono::seconds kEventPatience{5};
inline constexpr std::chrono::seconds kEventInterval{30};

struct WaitingCause {
  // CamelCase: Unschedulable, GangNotReady, ImagePullFailed, VolumeMissing, PodsRefused, ...
  std::string reason;
  std::string message;  // "2 pods: 0/3 nodes are available: ..."
};

// `reported`: the reason of a pod's state or of an event, such as "FailedScheduling".
std::string_view reason_of_report(std::string_view reported, std::string_view message);

// From the text of an event about an object that waits, "REASON: MESSAGE" ("FailedMount:
// MountVolume.SetUp failed ..."). nullopt for "".
std::optional<WaitingCause> cause_of_event(std::string_view event);

// Returns whether such a text says that a controller could not create a pod, a Job or another
// child.
bool is_refusal_event(std::string_view event);

WaitingCause cause_of_refusal(const kube::Refusal& refusal);

// The reasons of cause_of_refusal(), and those of cause_of_event() for refused pods; "" for any
// other word. The result lives as long as the program.
std::string_view known_refusal(std::string_view reason);

// Returns what the owner of an object can do about a cause, in one or two sentences; "" if there is
// nothing to advise. If the message shows who refused, the advice is about that.
std::string advice_for(std::string_view reason, std::string_view message);

}  // namespace trainer
