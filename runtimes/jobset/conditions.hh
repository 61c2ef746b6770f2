// The condition types of a JobSet (JobSet, api/jobset/v1alpha2/jobset_types.go).
#pragma once

#include <string_view>

#include "api/jobset.hh"

namespace trainer::jobset {

inline constexpr std::string_view kCompleted = "Completed";
inline constexpr std::string_view kFailed = "Failed";
inline constexpr std::string_view kSuspended = "Suspended";
inline constexpr std::string_view kRestarting = "RestartingJobSet";
inline constexpr std::string_view kStartupInProgress = "StartupPolicyInProgress";
inline constexpr std::string_view kStartupCompleted = "StartupPolicyCompleted";
// This is an extension of this controller (docs/decisions/0052): a node caused the failure of a
// pod, and Jobs that are created later prefer other nodes. The message begins with the node's name
// and ": ". The condition is written by the patch that counts the restart, so it costs no request,
// and the next process finds it. A later failure of this kind replaces it.
inline constexpr std::string_view kAvoidedNode = "AvoidedNode";

// kReplicaFailure (runtimes/lifecycle/reasons.hh) is another extension.

// Completed or Failed is True: nothing runs again.
bool is_finished(const JobSetStatus& status);

}  // namespace trainer::jobset
