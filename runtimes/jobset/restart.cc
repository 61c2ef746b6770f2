// What failing and restarting do to the status: jobset-contract 3.6.
//
// The pass that counts a restart only counts it. Once that status stands, the Jobs are of a
// previous attempt by their labels, and the next passes delete and create them: Recreate each Job
// as its name becomes free, BlockingRecreate when all are gone (startup.cc).
#include <fmt/format.h>

#include <algorithm>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

void increment(std::vector<std::int32_t>& counts, std::size_t at, std::int32_t replicas) {
  if (counts.empty()) counts.assign(static_cast<std::size_t>(replicas), 0);
  ++counts[at];
}

bool has_place(const std::vector<std::int32_t>& counts, std::size_t at, std::int32_t replicas) {
  return at < (counts.empty() ? static_cast<std::size_t>(replicas) : counts.size());
}

}  // namespace

void fail(Pass& pass, std::string_view reason, std::string_view message) {
  pass.set_condition(kFailed, true, reason, message);
  pass.set_condition(kRestarting, false, "JobSetFailed", "jobset failed");
  pass.status.terminalState = "Failed";
}

void restart_all(Pass& pass, bool is_counted, std::string_view reason, std::string_view message) {
  ++pass.status.restarts;
  if (is_counted) ++pass.status.restartsCountTowardsMax;
  pass.set_condition(kRestarting, true, reason, message);
  // From here on the counters are those of the new attempt, which has no Jobs yet. Written with the
  // restart itself, so that no successes of the old attempt are remembered for the new one.
  for (Wave& wave : pass.waves) {
    wave.counters.ready = 0;
    wave.counters.succeeded = 0;
    wave.counters.failed = 0;
    wave.counters.active = 0;
    wave.counters.suspended = 0;
  }
}

bool restart_one(Pass& pass, const JobView& job, bool is_counted) {
  Wave* const wave = pass.find_wave(job.replicated_job);
  const auto index = parse_count(job.job_index);
  const auto at = static_cast<std::size_t>(index.value_or(0));
  if (!wave || !index || !has_place(wave->counters.jobRestarts, at, wave->replicas) ||
      !has_place(wave->counters.jobRestartsCountTowardsMax, at, wave->replicas)) {
    pass.warn(
        "MalformedJobLabel",
        fmt::format("Job {} cannot be restarted by itself: its labels {}=\"{}\" and {}=\"{}\" "
                    "name no Job of this JobSet; delete the Job to have it created anew",
                    job.name, kReplicatedJobNameKey, job.replicated_job, kJobIndexKey,
                    job.job_index));
    return false;
  }
  increment(wave->counters.jobRestarts, at, wave->replicas);
  if (is_counted) increment(wave->counters.jobRestartsCountTowardsMax, at, wave->replicas);
  return true;
}

bool is_budget_spent(const Pass& pass) {
  const auto& policy = pass.jobset.spec.failurePolicy;
  const std::int64_t limit = policy ? policy->maxRestarts.value_or(0) : 0;
  std::int64_t spent = pass.status.restartsCountTowardsMax;
  if (pass.observed.gates.restart_job) spent += pass.counted_job_restarts();
  return spent >= limit;
}

}  // namespace trainer::jobset
