// A condition reports what the API server refuses of a JobSet: a child that this controller writes,
// or the pods of a Job.
#include <algorithm>
#include <array>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/policies.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/lifecycle/waits.hh"

namespace trainer::jobset {
namespace {

// If all Jobs are ready, or have been, no pod is missing.
const JobView* find_job_without_pods(const JobSetContext& context) {
  const bool are_all_up =
      std::all_of(context.rjobs.begin(), context.rjobs.end(),
                  [](const ReplicatedJobState& each) { return each.has_started(); });
  return are_all_up ? nullptr : trainer::find_job_without_pods(context.jobs.active);
}

kube::Time waits_since(const JobSetContext& context) {
  const JobSet& jobset = context.jobset;
  const std::array conditions{kube::find_condition(jobset.status.conditions, kSuspended),
                              kube::find_condition(jobset.status.conditions, kRestarting)};
  return trainer::waits_since(jobset.metadata.creation_timestamp, conditions, context.observed.now);
}

// Asks for the events of a Job that lacks pods. The next plan has the answer.
std::optional<WaitingCause> cause_by_events(JobSetContext& context) {
  const JobView* const job = find_job_without_pods(context);
  if (!job || is_finished(context.status)) return std::nullopt;
  const auto waited = context.observed.now - waits_since(context);
  if (waited < kube::kEventDelay) {
    context.plan.requeue_within(kube::kEventDelay - waited);
    return std::nullopt;
  }
  context.plan.needs_events = kube::EventSource{kube::kJobs.kind, job->name};
  context.plan.requeue_within(kube::kEventInterval);
  const std::string& warning = context.observed.warning;
  return is_refusal_event(warning) ? cause_of_event(warning) : std::nullopt;
}

}  // namespace

void report_refusals(JobSetContext& context) {
  const kube::Refusal* const refusal = context.observed.refusal;
  std::optional<WaitingCause> cause;
  if (refusal) {
    cause = cause_of_refusal(*refusal);
  } else if (!context.observed.is_of_trainjob && !context.is_suspended()) {
    cause = cause_by_events(context);
  }
  const bool is_reported =
      kube::find_condition(context.status.conditions, kReplicaFailure) != nullptr;
  if (!cause && !is_reported) return;
  if (!cause || is_finished(context.status)) return context.clear_replica_failure();
  context.set_replica_failure(*cause, refusal != nullptr);
}

}  // namespace trainer::jobset
