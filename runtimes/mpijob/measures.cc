#include <algorithm>

#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/lifecycle/waits.hh"
#include "runtimes/mpijob/context.hh"

namespace trainer::mpijob {
namespace {

constexpr std::string_view kFailures[] = {reasons::kBackoffLimitExceeded,
                                          reasons::kDeadlineExceeded, reasons::kPodsFailed};

const v1::JobCondition* find(const v1::JobStatus& status, std::string_view type) {
  const auto found = std::ranges::find(status.conditions, type, &v1::JobCondition::type);
  return found == status.conditions.end() ? nullptr : &*found;
}

bool is_true(const v1::JobStatus& status, std::string_view type) {
  const v1::JobCondition* const condition = find(status, type);
  return condition && condition->is_true();
}

std::string_view phase_of(const v1::JobStatus& status) {
  if (is_true(status, kFailed)) return "Failed";
  if (is_true(status, kSucceeded)) return "Complete";
  if (is_true(status, kSuspended)) return "Suspended";
  return is_true(status, kRunning) ? "Running" : "Pending";
}

}  // namespace

std::span<const std::string_view> failure_reasons() {
  return kFailures;
}

JobFacts facts_of(const v1::V1Job& job) {
  JobFacts facts(job.metadata, phase_of(job.status));
  const v1::JobCondition* const refusal = find(job.status, kReplicaFailure);
  facts.waiting = trainer::waiting_reason(
      facts.phase, refusal && refusal->is_true() ? refusal->reason : std::string_view());
  if (facts.phase == "Failed") {
    const std::string& reason = find(job.status, kFailed)->reason;
    facts.failure = kFailures[2];
    for (const std::string_view one : kFailures)
      if (reason.starts_with(one)) facts.failure = one;
  }
  facts.has_run = find(job.status, kRunning) != nullptr;
  return facts;
}

}  // namespace trainer::mpijob
