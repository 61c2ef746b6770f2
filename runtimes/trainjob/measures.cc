#include "runtimes/trainjob/measures.hh"

#include <algorithm>

#include "kube/model/meta.hh"
#include "runtimes/lifecycle/reason.hh"
#include "runtimes/trainjob/conditions.hh"

namespace trainer {
namespace {

constexpr std::string_view kPhases[] = {"Queued",    "Initializing", "Pending",
                                        "Starting",  "Running",      "Restarting",
                                        "Suspended", "Complete",     "Failed"};

// The JobSet's condition Failed has these reasons, and plan.cc sets others.
constexpr std::string_view kFailures[] = {
    reasons::kFailedJobs,           reasons::kReachedMaxRestarts,
    reasons::kFailJobSet,           reasons::kDeadlineExceeded,
    reasons::kRuntimeNotSupported,  reasons::kStalled,
    reasons::kProcessesKeepFailing, reasons::kOther};

std::string_view known(std::string_view word, std::span<const std::string_view> words) {
  const auto at = std::find(words.begin(), words.end(), word);
  return at == words.end() ? reasons::kOther.name : *at;
}

}  // namespace

std::string_view phase_of(const TrainJobStatus& status) {
  return status.phase.empty() ? "Pending" : known(status.phase, kPhases);
}

std::string_view waiting_reason(const TrainJobStatus& status) {
  for (const std::string_view phase : {"Complete", "Failed"})
    if (status.phase == phase) return {};
  if (status.phase == "Running")
    return status.reason == reasons::kStalled.name ? reasons::kStalled.name : std::string_view();
  if (status.reason.empty()) return reasons::kCreatingPods;
  const Reason* const reason = find_reason(status.reason);
  return reason ? reason->name : reasons::kOther.name;
}

std::string_view failure_reason(const TrainJobStatus& status) {
  const kube::Condition* const failed = kube::find_condition(status.conditions, kFailed);
  return failed && failed->is_true() ? known(failed->reason, kFailures) : std::string_view();
}

std::span<const std::string_view> failure_reasons() {
  return kFailures;
}

JobFacts facts_of(const TrainJob& job, const JobSet* jobset) {
  JobFacts facts(job.metadata, phase_of(job.status));
  facts.runtime = job.spec.runtimeRef.name;
  facts.waiting = waiting_reason(job.status);
  facts.failure = failure_reason(job.status);
  facts.has_stragglers = facts.phase == "Running" && !job.status.stragglers.empty();
  facts.has_run =
      facts.phase == "Restarting" || (job.is_suspended() && job.status.startTime.has_value());
  if (const auto& goodput = job.status.goodput)
    facts.times = JobTimes{goodput->productive, goodput->queued, goodput->starting,
                           goodput->recomputed, goodput->stalled};
  if (jobset) {
    const std::int32_t counted = jobset->status.restartsCountTowardsMax;
    facts.restarts = JobRestarts{counted, jobset->status.restarts - counted,
                                 job.status.processRestarts.value_or(0)};
  }
  return facts;
}

JobFacts facts_of_unreadable(const kube::Json& object) {
  TrainJobStatus status;
  status.phase = object.get("status").get_string("phase");
  status.reason = reasons::kUnreadable;
  JobFacts facts;
  facts.ns = object.get("metadata").get_string("namespace");
  facts.phase = phase_of(status);
  facts.waiting = waiting_reason(status);
  facts.has_run = true;
  return facts;
}

}  // namespace trainer
