#include "runtimes/jobset/measures.hh"

#include <algorithm>

#include "kube/model/meta.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/reconcile_context.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/lifecycle/waits.hh"
#include "runtimes/views/labels.hh"

namespace trainer::jobset {
namespace {

// These are the reasons of failure.cc and in_place_restart.cc. Another controller may have written
// another one.
constexpr std::string_view kFailures[] = {reasons::kFailedJobs, reasons::kReachedMaxRestarts,
                                          reasons::kFailJobSet, reasons::kOther};

const ReplicatedJobStatus* find_status(const JobSetStatus& status, std::string_view name) {
  const auto at =
      std::find_if(status.replicatedJobsStatus.begin(), status.replicatedJobsStatus.end(),
                   [name](const ReplicatedJobStatus& each) { return each.name == name; });
  return at == status.replicatedJobsStatus.end() ? nullptr : &*at;
}

bool has_jobs(const ReplicatedJobStatus& status) {
  return status.ready > 0 || status.succeeded > 0 || status.failed > 0 || status.active > 0 ||
         status.suspended > 0;
}

bool is_running(const JobSet& jobset) {
  bool is_any_ready = false;
  for (const ReplicatedJob& rjob : jobset.spec.replicatedJobs) {
    const ReplicatedJobStatus* const counts = find_status(jobset.status, rjob.name);
    if (!counts) return false;
    const bool may_start_later = is_in_order(jobset) || !rjob.dependsOn.empty();
    if (may_start_later && !has_jobs(*counts)) continue;
    if (counts->ready + counts->succeeded < rjob.replica_count()) return false;
    is_any_ready = is_any_ready || counts->ready > 0;
  }
  return is_any_ready;
}

std::string_view phase_while_suspended(const JobSet& jobset) {
  return queue_of(jobset.metadata.labels).empty() ? "Suspended" : "Queued";
}

}  // namespace

std::string_view phase_of(const JobSet& jobset) {
  const JobSetStatus& status = jobset.status;
  if (kube::is_condition_true(status.conditions, kFailed)) return "Failed";
  if (kube::is_condition_true(status.conditions, kCompleted)) return "Complete";
  if (jobset.spec.suspend.value_or(false)) return phase_while_suspended(jobset);
  if (is_running(jobset)) return "Running";
  return status.restarts > 0 ? "Restarting" : "Pending";
}

std::string_view waiting_reason(const JobSetStatus& status, std::string_view phase) {
  const auto* const failure = kube::find_condition(status.conditions, kReplicaFailure);
  return trainer::waiting_reason(phase, failure && failure->is_true() ? failure->reason : "");
}

std::string_view failure_reason(const JobSetStatus& status) {
  const kube::Condition* const failed = kube::find_condition(status.conditions, kFailed);
  if (!failed || !failed->is_true()) return {};
  const auto* const at = std::find(std::begin(kFailures), std::end(kFailures), failed->reason);
  return at == std::end(kFailures) ? reasons::kOther.name : *at;
}

std::span<const std::string_view> failure_reasons() {
  return kFailures;
}

JobFacts facts_of(const JobSet& jobset) {
  JobFacts facts(jobset.metadata, phase_of(jobset));
  facts.waiting = waiting_reason(jobset.status, facts.phase);
  facts.failure = failure_reason(jobset.status);
  facts.has_run = jobset.status.restarts > 0;
  const std::int32_t counted = jobset.status.restartsCountTowardsMax;
  facts.restarts = JobRestarts{counted, jobset.status.restarts - counted, 0};
  return facts;
}

}  // namespace trainer::jobset
