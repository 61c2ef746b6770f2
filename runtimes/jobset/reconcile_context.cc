#include "runtimes/jobset/reconcile_context.hh"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

// These are far more than are in flight at a time, and a few milliseconds of work.
constexpr std::size_t kMaxActions = 1'000;

}  // namespace

JobSetContext::JobSetContext(const Observed& what)
    : observed(what),
      jobset(what.jobset),
      status(what.jobset.status),
      by_name_(jobset.spec.replicatedJobs,
               [](const ReplicatedJob& job) { return std::string_view(job.name); }) {
  rjobs.reserve(jobset.spec.replicatedJobs.size());
  for (const ReplicatedJob& replicated_job : jobset.spec.replicatedJobs) {
    ReplicatedJobState rjob;
    rjob.spec = &replicated_job;
    rjob.replicas = std::max(replicated_job.replica_count(), 0);
    rjob.counters.name = replicated_job.name;
    rjobs.push_back(std::move(rjob));
  }
  mark_kept_jobs(*this);
  for (const ReplicatedJobStatus& stored : jobset.status.replicatedJobsStatus) {
    ReplicatedJobState* const rjob = find_rjob(stored.name);
    if (!rjob) continue;
    rjob->stored = &stored;
    rjob->counters.unknown = stored.unknown;
    if (!observed.gates.restart_job) continue;
    rjob->counters.jobRestarts = stored.jobRestarts;
    rjob->counters.jobRestartsCountTowardsMax = stored.jobRestartsCountTowardsMax;
  }
}

bool is_in_order(const JobSet& jobset) {
  return jobset.spec.startupPolicy && jobset.spec.startupPolicy->startupPolicyOrder == "InOrder";
}

ReplicatedJobState* JobSetContext::find_rjob(std::string_view name) {
  const auto at = by_name_.find(name);
  return at ? &rjobs[*at] : nullptr;
}

bool JobSetContext::may_be_kept(const JobView& job) {
  const ReplicatedJobState* const rjob = find_rjob(job.replicated_job);
  return rjob && rjob->is_kept;
}

std::int64_t JobSetContext::total_replicas() const {
  std::int64_t total = 0;
  for (const ReplicatedJobState& rjob : rjobs) total += rjob.replicas;
  return total;
}

std::int64_t JobSetContext::counted_job_restarts() const {
  std::int64_t total = 0;
  for (const ReplicatedJobState& rjob : rjobs) {
    for (const std::int32_t restarts : rjob.counters.jobRestartsCountTowardsMax) total += restarts;
  }
  return total;
}

bool JobSetContext::has_room() {
  if (plan.actions.size() < kMaxActions) return true;
  plan.requeue_after = std::chrono::milliseconds(0);
  return false;
}

void JobSetContext::patch_job(const JobView& job, std::string_view subresource, kube::Json patch) {
  patch["metadata"].set("resourceVersion", job.resource_version);
  plan.actions.push_back({.verb = kube::Action::Verb::kMergePatch,
                          .resource = kube::kJobs,
                          .key = {jobset.metadata.ns, job.name},
                          .subresource = std::string(subresource),
                          .body = std::move(patch)});
}

}  // namespace trainer::jobset
