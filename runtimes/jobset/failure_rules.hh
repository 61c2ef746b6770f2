// These lists hold what a rule of a failure policy may say (JobSet,
// pkg/webhooks/jobset_webhook.go). Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace trainer::jobset {

inline constexpr std::size_t kLongestRuleName = 128;

// The condition Failed of a Job has one of these reasons.
inline constexpr std::array<std::string_view, 5> kJobFailureReasons = {
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded",
    "PodFailurePolicy"};

// A rule's name becomes part of a condition's reason and obeys its grammar.
bool is_rule_name(std::string_view name);
bool is_job_failure_reason(std::string_view reason);

}  // namespace trainer::jobset
