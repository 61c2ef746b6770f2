#include <algorithm>

#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/lifecycle/waits.hh"
#include "runtimes/mpijob/context.hh"

namespace trainer::mpijob {
namespace {

constexpr std::string_view kFailures[] = {reasons::kBackoffLimitExceeded,
                                          reasons::kDeadlineExceeded, reasons::kPodsFailed};

std::string_view phase_of(const v1::JobStatus& status) {
  if (status.is_true(kFailed)) return "Failed";
  if (status.is_true(kSucceeded)) return "Complete";
  if (status.is_true(kSuspended)) return "Suspended";
  return status.is_true(kRunning) ? "Running" : "Pending";
}

}  // namespace

std::span<const std::string_view> failure_reasons() {
  return kFailures;
}

JobFacts facts_of(const v1::V1Job& job) {
  JobFacts facts(job.metadata, phase_of(job.status));
  const v1::JobCondition* const refusal = job.status.find(kReplicaFailure);
  facts.waiting = trainer::waiting_reason(
      facts.phase, refusal && refusal->is_true() ? refusal->reason : std::string_view());
  if (facts.phase == "Failed") {
    const std::string& reason = job.status.find(kFailed)->reason;
    facts.failure = kFailures[2];
    for (const std::string_view one : kFailures)
      if (reason.starts_with(one)) facts.failure = one;
  }
  facts.has_run = job.status.find(kRunning) != nullptr;
  return facts;
}

}  // namespace trainer::mpijob
