#include "runtimes/v1/measures.hh"

#include <algorithm>
#include <utility>

#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/lifecycle/waits.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

// The first of these conditions that is true.
constexpr std::pair<std::string_view, std::string_view> kPhases[] = {{kFailed, "Failed"},
                                                                     {kSucceeded, "Complete"},
                                                                     {kSuspended, "Suspended"},
                                                                     {kRestarting, "Restarting"},
                                                                     {kRunning, "Running"}};

constexpr std::string_view kFailures[] = {reasons::kBackoffLimitExceeded,
                                          reasons::kDeadlineExceeded, reasons::kPodsFailed};

}  // namespace

std::string_view phase_of(const JobStatus& status) {
  for (const auto& [condition, phase] : kPhases)
    if (status.is_true(condition)) return phase;
  return "Pending";
}

bool has_run(const JobStatus& status) {
  return std::any_of(status.conditions.begin(), status.conditions.end(), [](const auto& condition) {
    return condition.type == kRunning || condition.type == kRestarting;
  });
}

std::string_view waiting_reason(const JobStatus& status, std::string_view phase) {
  for (const JobCondition& condition : status.conditions)
    if (condition.type == kReplicaFailure && condition.is_true())
      return trainer::waiting_reason(phase, condition.reason);
  return trainer::waiting_reason(phase, "");
}

std::string_view failure_reason(const JobStatus& status) {
  if (!status.is_true(kFailed)) return {};
  if (is_out_of_retries(status)) return reasons::kBackoffLimitExceeded;
  return is_out_of_time(status) ? reasons::kDeadlineExceeded.name : reasons::kPodsFailed.name;
}

std::span<const std::string_view> failure_reasons() {
  return kFailures;
}

JobFacts facts_of(const V1Job& job) {
  JobFacts facts(job.metadata, phase_of(job.status));
  facts.waiting = waiting_reason(job.status, facts.phase);
  facts.failure = failure_reason(job.status);
  facts.has_run = has_run(job.status);
  return facts;
}

}  // namespace trainer::v1
