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

// Completed or Failed is True: nothing runs again.
bool is_finished(const JobSetStatus& status);

}  // namespace trainer::jobset
