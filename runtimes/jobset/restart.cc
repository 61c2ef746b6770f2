// This file makes the changes of the status when a JobSet fails or restarts (JobSet,
// pkg/controllers).
//
// The reconcile that counts a restart only counts it. Once that status is written, the labels of
// the Jobs are those of a previous attempt, and the next reconciles delete and create the Jobs:
// Recreate each Job when its name becomes free, BlockingRecreate when all are gone (startup.cc).
//
// This is an extension (docs/decisions/0050): the annotation kept-on-restart names replicated jobs
// whose Jobs go on into the next attempt if others no longer wait for them. They get the label of
// that attempt.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/disruption.hh"
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

void mark_kept_jobs(JobSetContext& context) {
  const auto& annotations = context.jobset.metadata.annotations;
  const auto kept = annotations.find(kKeptOnRestartKey);
  if (kept == annotations.end()) return;
  for (std::string_view names = kept->second; !names.empty();) {
    const std::size_t end = std::min(names.find(','), names.size());
    if (ReplicatedJobState* const rjob = context.find_rjob(names.substr(0, end)))
      rjob->is_kept = true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  for (const std::string_view status : {"Ready", "Complete"}) {
    for (const ReplicatedJobState& rjob : context.rjobs) {
      for (const DependsOn& dependency : rjob.spec->dependsOn) {
        ReplicatedJobState* const other = context.find_rjob(dependency.name);
        if (other && dependency.status == status) other->is_server = status == "Ready";
      }
    }
  }
}

bool is_kept(const ReplicatedJobState& rjob, const JobView& job) {
  if (!rjob.is_kept || job.failure()) return false;
  return job.is_complete() || (rjob.is_server && is_job_ready(job) && !job.is_deleting);
}

void keep_jobs(JobSetContext& context) {
  if (std::none_of(context.rjobs.begin(), context.rjobs.end(),
                   [](const ReplicatedJobState& rjob) { return rjob.is_kept; })) {
    return;
  }
  for (const auto* jobs : {&context.jobs.active, &context.jobs.successful}) {
    for (const JobView* job : *jobs) {
      const ReplicatedJobState* const rjob = context.find_rjob(job->replicated_job);
      if (!rjob || !rjob->is_kept ||
          parse_count(job->restart_attempt) >= context.jobset.status.restarts)
        continue;
      if (!context.has_room()) return;
      const kube::Json attempt = kube::Json::object(
          {{std::string(kRestartAttemptKey), std::to_string(context.jobset.status.restarts)}});
      kube::Action action;
      action.verb = kube::Action::Verb::kMergePatch;
      action.resource = kube::kJobs;
      action.key = {context.jobset.metadata.ns, job->name};
      action.body = kube::Json::object(
          {{"metadata", kube::Json::object({{"resourceVersion", job->resource_version},
                                            {"labels", attempt},
                                            {"annotations", attempt}})}});
      context.plan.actions.push_back(std::move(action));
    }
  }
}

void fail(JobSetContext& context, std::string_view reason, std::string_view message) {
  context.set_condition(kFailed, true, reason, message);
  context.set_condition(kRestarting, false, "JobSetFailed", "jobset failed");
  context.status.terminalState = "Failed";
}

void restart_all(JobSetContext& context, bool is_counted, std::string_view reason,
                 std::string_view message) {
  if (context.status.executionAttempts) ++*context.status.executionAttempts;
  ++context.status.restarts;
  if (is_counted) ++context.status.restartsCountTowardsMax;
  context.set_condition(kRestarting, true, reason, message);
  // From here on the counters are those of the new attempt, which has no Jobs yet. They are written
  // with the restart itself, so that no successes of the old attempt count for the new one.
  for (ReplicatedJobState& rjob : context.rjobs) {
    if (!rjob.is_kept) rjob.counters.ready = rjob.counters.succeeded = 0;
    rjob.counters.failed = 0;
    rjob.counters.active = 0;
    rjob.counters.suspended = 0;
  }
}

bool restart_one(JobSetContext& context, const JobView& job, bool is_counted) {
  ReplicatedJobState* const rjob = context.find_rjob(job.replicated_job);
  const auto index = parse_count(job.job_index);
  const auto at = static_cast<std::size_t>(index.value_or(0));
  if (!rjob || !index || !has_place(rjob->counters.jobRestarts, at, rjob->replicas) ||
      !has_place(rjob->counters.jobRestartsCountTowardsMax, at, rjob->replicas)) {
    context.warn("MalformedJobLabel",
                 "Job {} cannot be restarted by itself: its labels {}=\"{}\" and {}=\"{}\" name "
                 "no Job of this JobSet; delete the Job to have it created again",
                 job.name, kReplicatedJobNameKey, job.replicated_job, kJobIndexKey, job.job_index);
    return false;
  }
  increment(rjob->counters.jobRestarts, at, rjob->replicas);
  if (is_counted) increment(rjob->counters.jobRestartsCountTowardsMax, at, rjob->replicas);
  return true;
}

void record_avoided_node(JobSetContext& context, const JobView& first) {
  const PodView* found = nullptr;
  const auto end_of = [](const PodView& pod) {
    return pod.failure ? pod.failure->finished_at : std::nullopt;
  };
  for (const PodView* pod : context.observed.pods) {
    if (!pod->is_node_failure || pod->node_name.empty() ||
        !is_pod_of(*pod, first, context.may_be_kept(first)))
      continue;
    if (!found || end_of(*pod) < end_of(*found)) found = pod;
  }
  if (!found) return;
  context.set_condition(
      kAvoidedNode, true, "NodeFailure",
      fmt::format("{}: pod {} failed by the fault of this node; later attempts prefer others",
                  found->node_name, found->name));
}

bool is_budget_spent(const JobSetContext& context) {
  const auto& policy = context.jobset.spec.failurePolicy;
  const std::int64_t limit = policy ? policy->maxRestarts.value_or(0) : 0;
  std::int64_t spent = context.status.restartsCountTowardsMax;
  if (context.observed.gates.restart_job) spent += context.counted_job_restarts();
  return spent >= limit;
}

}  // namespace trainer::jobset
