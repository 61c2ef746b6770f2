// Counting Jobs, and what of the status is written: jobset-contract 4.
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

bool is_up(const JobView& job) {
  const std::int32_t parallelism = job.parallelism.value_or(1);
  const std::int32_t expected = std::min(parallelism, job.completions.value_or(parallelism));
  return job.succeeded + job.ready >= expected;
}

bool has_job_ttl(const Wave& wave) {
  return job_number(*wave.spec, "ttlSecondsAfterFinished").has_value();
}

// Jobs that the stored status counts as succeeded and that are gone since. The status only has a
// number, so this is certain only where no other Job of the wave is missing; where one is, all
// missing ones run again, for a Job that is wrongly taken for succeeded would be worse.
std::int32_t count_remembered(const Wave& wave) {
  if (!wave.stored || !has_job_ttl(wave)) return 0;
  const std::int32_t gone = wave.stored->succeeded - wave.counters.succeeded;
  const std::int32_t missing = wave.replicas - static_cast<std::int32_t>(wave.taken.size());
  return gone > 0 && gone == missing ? gone : 0;
}

// Suspended JobSets have no Jobs until the first resume. Those that would run next count as
// suspended all the same, since that is what queues and people look for.
void count_held_back(Pass& pass) {
  if (!pass.is_suspended() || is_finished(pass.jobset.status)) return;
  for (Wave& wave : pass.waves) {
    if (!are_dependencies_met(pass, wave)) continue;
    wave.counters.suspended += std::max(wave.replicas - wave.current - wave.remembered, 0);
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
  bool counters = false;   // of Jobs
  bool successes = false;  // that only the status will remember
  bool restarts = false;   // of the set or of single Jobs
  bool conditions = false;
  bool terminal = false;
  bool attempts = false;  // of in-place restarts
};

Changes compare(const Pass& pass) {
  const JobSetStatus& before = pass.jobset.status;
  const JobSetStatus& after = pass.status;
  Changes changes;
  // Compared by name: the order on the wire is of no meaning and must not cause writes.
  changes.counters = before.replicatedJobsStatus.size() != pass.waves.size();
  for (const Wave& wave : pass.waves) {
    const ReplicatedJobStatus nothing;
    const ReplicatedJobStatus& stored = wave.stored ? *wave.stored : nothing;
    changes.counters |= !wave.stored || !same_counts(stored, wave.counters);
    changes.restarts |= !same_restarts(stored, wave.counters);
    changes.successes |= stored.succeeded != wave.counters.succeeded && has_job_ttl(wave);
  }
  changes.restarts |= before.restarts != after.restarts ||
                      before.restartsCountTowardsMax != after.restartsCountTowardsMax;
  changes.conditions = before.conditions != after.conditions;
  changes.terminal = before.terminalState != after.terminalState;
  changes.attempts = before.previousInPlaceRestartAttempt != after.previousInPlaceRestartAttempt ||
                     before.currentInPlaceRestartAttempt != after.currentInPlaceRestartAttempt;
  return changes;
}

}  // namespace

void count_jobs(Pass& pass) {
  for (const JobView* job : pass.jobs.active) {
    Wave* const wave = pass.find_wave(job->replicated_job);
    if (!wave) continue;
    if (is_up(*job)) ++wave->counters.ready;
    if (job->active > 0) ++wave->counters.active;
    if (job->is_suspended) ++wave->counters.suspended;
  }
  for (const JobView* job : pass.jobs.successful) {
    if (Wave* const wave = pass.find_wave(job->replicated_job)) ++wave->counters.succeeded;
  }
  for (const JobView* job : pass.jobs.failed) {
    if (Wave* const wave = pass.find_wave(job->replicated_job)) ++wave->counters.failed;
  }
  for (Wave& wave : pass.waves) {
    if (!has_job_ttl(wave)) wave.done.clear();
    const auto done = static_cast<std::int32_t>(wave.done.size());
    wave.remembered = std::max(count_remembered(wave), done);
    wave.counters.succeeded += wave.remembered;
  }
  count_held_back(pass);
}

void finish_status(Pass& pass) {
  const Changes changes = compare(pass);
  const bool is_major = changes.restarts || changes.conditions || changes.terminal ||
                        changes.attempts || changes.successes;
  if (!is_major && !changes.counters) {
    // A complaint is repeated only when something else happens, or it would be heard all the time.
    if (pass.plan.actions.empty()) pass.plan.events.clear();
    return;
  }
  pass.status.replicatedJobsStatus.clear();
  for (const Wave& wave : pass.waves) pass.status.replicatedJobsStatus.push_back(wave.counters);
  // By name, descending, as it always was on the wire.
  std::sort(pass.status.replicatedJobsStatus.begin(), pass.status.replicatedJobsStatus.end(),
            [](const auto& a, const auto& b) { return a.name > b.name; });
  Json difference = kube::merge_diff(write(pass.jobset.status), write(pass.status));
  if (!difference.is_object()) difference = Json::object();
  // Required wherever a status stands, and absent before its first write.
  difference.set("restarts", pass.status.restarts);
  pass.plan.status_patch = Json::object({{"status", std::move(difference)}});
  pass.plan.is_status_minor = !is_major;
  pass.plan.is_status_first = changes.restarts || changes.terminal;
}

}  // namespace trainer::jobset
