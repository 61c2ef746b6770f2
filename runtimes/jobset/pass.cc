#include "runtimes/jobset/pass.hh"

#include <algorithm>

namespace trainer::jobset {

Pass::Pass(const Observed& what) : observed(what), jobset(what.jobset), status(what.jobset.status) {
  waves.reserve(jobset.spec.replicatedJobs.size());
  for (const ReplicatedJob& replicated_job : jobset.spec.replicatedJobs) {
    Wave wave;
    wave.spec = &replicated_job;
    wave.replicas = std::max(replicated_job.replica_count(), 0);
    wave.counters.name = replicated_job.name;
    by_name_.emplace_back(replicated_job.name, waves.size());
    waves.push_back(std::move(wave));
  }
  std::sort(by_name_.begin(), by_name_.end());
  for (const ReplicatedJobStatus& stored : jobset.status.replicatedJobsStatus) {
    Wave* const wave = find_wave(stored.name);
    if (!wave) continue;
    wave->stored = &stored;
    wave->counters.unknown = stored.unknown;
    if (!observed.gates.restart_job) continue;
    wave->counters.jobRestarts = stored.jobRestarts;
    wave->counters.jobRestartsCountTowardsMax = stored.jobRestartsCountTowardsMax;
  }
}

bool Pass::is_in_order() const {
  return jobset.spec.startupPolicy && jobset.spec.startupPolicy->startupPolicyOrder == "InOrder";
}

Wave* Pass::find_wave(std::string_view name) {
  const auto at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  return at != by_name_.end() && at->first == name ? &waves[at->second] : nullptr;
}

std::int64_t Pass::total_replicas() const {
  std::int64_t total = 0;
  for (const Wave& wave : waves) total += wave.replicas;
  return total;
}

std::int64_t Pass::counted_job_restarts() const {
  std::int64_t total = 0;
  for (const Wave& wave : waves) {
    for (const std::int32_t restarts : wave.counters.jobRestartsCountTowardsMax) total += restarts;
  }
  return total;
}

}  // namespace trainer::jobset
