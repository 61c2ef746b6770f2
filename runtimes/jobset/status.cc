// This file counts Jobs, and decides what is written of the status (JobSet, pkg/controllers).
#include <algorithm>
#include <utility>

#include "api/api.hh"
#include "kube/model/patch.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

bool has_job_ttl(const ReplicatedJobState& rjob) {
  return job_number(*rjob.spec, "ttlSecondsAfterFinished").has_value();
}

// Returns the number of Jobs that the stored status counts as succeeded, and that have been deleted
// since. The status only has their number, so it is certain only if no other Job of the replicated
// job is missing. If one is, all missing Jobs run again: it would be worse to take a Job for
// succeeded by mistake.
std::int32_t count_expired(const ReplicatedJobState& rjob) {
  if (!rjob.stored || !has_job_ttl(rjob)) return 0;
  const std::int32_t gone = rjob.stored->succeeded - rjob.counters.succeeded;
  const std::int32_t missing = rjob.replicas - static_cast<std::int32_t>(rjob.taken.size());
  return gone > 0 && gone == missing ? gone : 0;
}

// Suspended JobSets have no Jobs until the first resume. The Jobs that would run next count as
// suspended nevertheless, since queues and users read that.
void count_held_back(JobSetContext& context) {
  if (!context.is_suspended() || is_finished(context.jobset.status)) return;
  for (ReplicatedJobState& rjob : context.rjobs) {
    if (!are_dependencies_met(context, rjob)) continue;
    rjob.counters.suspended += std::max(rjob.replicas - rjob.current - rjob.expired, 0);
  }
}

bool same_counts(const ReplicatedJobStatus& a, const ReplicatedJobStatus& b) {
  return a.ready == b.ready && a.succeeded == b.succeeded && a.failed == b.failed &&
         a.active == b.active && a.suspended == b.suspended;
}

bool same_restarts(const ReplicatedJobStatus& a, const ReplicatedJobStatus& b) {
  return a.jobRestarts == b.jobRestarts &&
         a.jobRestartsCountTowardsMax == b.jobRestartsCountTowardsMax;
}

struct Changes {
  bool counters = false;  // the counters of Jobs differ
  // Anything else than counters differs, or successes of Jobs that are gone, which only the status
  // records.
  bool is_major = false;
  // Restarts and the end differ. They are written before anything is deleted
  // (Plan::is_status_first).
  bool is_first = false;
};

Changes compare(const JobSetContext& context) {
  const JobSetStatus& before = context.jobset.status;
  const JobSetStatus& after = context.status;
  Changes changes;
  // The members are compared by name: their order has no meaning, and must not cause writes.
  changes.counters = before.replicatedJobsStatus.size() != context.rjobs.size();
  changes.is_first =
      before.restarts != after.restarts ||
      before.restartsCountTowardsMax != after.restartsCountTowardsMax ||
      before.terminalState != after.terminalState ||
      (before.executionAttempts && before.executionAttempts != after.executionAttempts);
  for (const ReplicatedJobState& rjob : context.rjobs) {
    const ReplicatedJobStatus nothing;
    const ReplicatedJobStatus& stored = rjob.stored ? *rjob.stored : nothing;
    changes.counters |= !rjob.stored || !same_counts(stored, rjob.counters);
    changes.is_first |= !same_restarts(stored, rjob.counters);
    changes.is_major |= stored.succeeded != rjob.counters.succeeded && has_job_ttl(rjob);
  }
  changes.is_major |= changes.is_first || before.conditions != after.conditions ||
                      before.previousInPlaceRestartAttempt != after.previousInPlaceRestartAttempt ||
                      before.currentInPlaceRestartAttempt != after.currentInPlaceRestartAttempt;
  return changes;
}

}  // namespace

bool is_job_ready(const JobView& job) {
  const std::int32_t parallelism = job.parallelism.value_or(1);
  const std::int32_t expected = std::min(parallelism, job.completions.value_or(parallelism));
  return job.succeeded + job.ready >= expected;
}

void count_jobs(JobSetContext& context) {
  for (const JobView* job : context.jobs.active) {
    ReplicatedJobState* const rjob = context.find_rjob(job->replicated_job);
    if (!rjob) continue;
    if (is_job_ready(*job)) ++rjob->counters.ready;
    if (job->active > 0) ++rjob->counters.active;
    if (job->is_suspended) ++rjob->counters.suspended;
  }
  for (const JobView* job : context.jobs.successful)
    if (ReplicatedJobState* const rjob = context.find_rjob(job->replicated_job))
      ++rjob->counters.succeeded;
  for (const JobView* job : context.jobs.failed)
    if (ReplicatedJobState* const rjob = context.find_rjob(job->replicated_job))
      ++rjob->counters.failed;
  for (ReplicatedJobState& rjob : context.rjobs) {
    if (!has_job_ttl(rjob)) rjob.done.clear();
    const auto done = static_cast<std::int32_t>(rjob.done.size());
    rjob.expired = std::max(count_expired(rjob), done);
    rjob.counters.succeeded += rjob.expired;
  }
  count_held_back(context);
}

void finish_status(JobSetContext& context) {
  const Changes changes = compare(context);
  if (!changes.is_major && !changes.counters) {
    // A warning is repeated only if something else happens. Otherwise each reconcile would send it.
    if (context.plan.actions.empty()) context.plan.events.clear();
    return;
  }
  context.status.replicatedJobsStatus.clear();
  for (const ReplicatedJobState& rjob : context.rjobs)
    context.status.replicatedJobsStatus.push_back(rjob.counters);
  // They are sorted by name, descending, which is the order of all earlier statuses.
  std::sort(context.status.replicatedJobsStatus.begin(), context.status.replicatedJobsStatus.end(),
            [](const auto& a, const auto& b) { return a.name > b.name; });
  for (const std::string& cut : fit(context.status))
    context.warn("StatusTruncated", "status: " + cut);
  Json difference = kube::merge_diff(write(context.jobset.status), write(context.status));
  if (!difference.is_object()) difference = Json::object();
  // The field is required in every status, and absent before the first write.
  difference.set("restarts", context.status.restarts);
  context.plan.status_patch = Json::object({{"status", std::move(difference)}});
  if (!changes.is_major) context.plan.status_change = kube::Plan::StatusChange::kCounters;
  if (changes.is_first) context.plan.status_time = kube::Plan::StatusTime::kBeforeActions;
}

}  // namespace trainer::jobset
