#include "runtimes/trainjob/conditions.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtimes/jobset/disruption.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

void copy_terminal(TrainJobStatus& status, const JobSet& jobset, std::string_view from,
                   std::string_view to, kube::Time now) {
  const kube::Condition* source = kube::find_condition(jobset.status.conditions, from);
  if (!source || !source->is_true() || is_finished(status)) return;
  kube::Condition copy = *source;
  copy.type = to;
  if (!copy.last_transition_time) copy.last_transition_time = now.whole_seconds();
  const auto exists = std::find_if(status.conditions.begin(), status.conditions.end(),
                                   [to](const kube::Condition& c) { return c.type == to; });
  if (exists == status.conditions.end()) {
    status.conditions.push_back(std::move(copy));
  } else {
    *exists = std::move(copy);
  }
}

JobStatus mirror(const ReplicatedJobStatus& source) {
  JobStatus copy;
  copy.name = source.name;
  copy.ready = source.ready;
  copy.succeeded = source.succeeded;
  copy.failed = source.failed;
  copy.active = source.active;
  copy.suspended = source.suspended;
  return copy;
}

kube::Condition make_condition(std::string_view type, std::string_view status,
                               std::string_view reason, std::string message) {
  kube::Condition condition;
  condition.type = type;
  condition.status = status;
  condition.reason = reason;
  condition.message = std::move(message);
  return condition;
}

}  // namespace

const kube::Condition* find_terminal(const TrainJobStatus& status) {
  for (const std::string_view type : {kFailed, kComplete}) {
    const kube::Condition* condition = kube::find_condition(status.conditions, type);
    if (condition && condition->is_true()) return condition;
  }
  return nullptr;
}

bool is_finished(const TrainJobStatus& status) {
  return find_terminal(status) != nullptr;
}

void set_suspended(TrainJobStatus& status, bool is_suspended, kube::Time now) {
  if (is_suspended) {
    kube::set_condition(status.conditions,
                        make_condition(kSuspended, "True", "Suspended", "TrainJob is suspended"),
                        now);
  } else if (kube::is_condition_true(status.conditions, kSuspended)) {
    kube::set_condition(status.conditions,
                        make_condition(kSuspended, "False", "Resumed", "TrainJob is resumed"), now);
  }
}

void mirror_jobset(TrainJobStatus& status, const JobSet& jobset, kube::Time now) {
  status.jobsStatus.clear();
  for (const ReplicatedJobStatus& job : jobset.status.replicatedJobsStatus)
    status.jobsStatus.push_back(mirror(job));
  // Kueue counts the jobs that are active, so these are kept if the status has no room for all.
  if (status.jobsStatus.size() > kMaxJobsStatus)
    std::stable_partition(status.jobsStatus.begin(), status.jobsStatus.end(),
                          [](const JobStatus& job) { return job.active > 0; });
  copy_terminal(status, jobset, "Completed", kComplete, now);
  copy_terminal(status, jobset, "Failed", kFailed, now);
}

std::string restart_budget(const JobSet& jobset) {
  if (!jobset.metadata.annotations.contains(jobset::kKeptOnRestartKey)) return {};
  const JobSetStatus& status = jobset.status;
  std::int64_t counted = status.restartsCountTowardsMax;
  for (const ReplicatedJobStatus& job : status.replicatedJobsStatus)
    for (const std::int32_t restarts : job.jobRestartsCountTowardsMax) counted += restarts;
  const auto& policy = jobset.spec.failurePolicy;
  std::string text = fmt::format("{}/{}", counted, policy ? policy->maxRestarts.value_or(0) : 0);
  if (const std::int32_t limit = jobset::max_disruption_restarts(jobset); limit > 0)
    text += fmt::format("+{}/{}", status.restarts - status.restartsCountTowardsMax, limit);
  return text;
}

void fail(TrainJobStatus& status, std::string_view reason, std::string message, kube::Time now) {
  kube::set_condition(status.conditions,
                      make_condition(kFailed, "True", reason, std::move(message)),
                      now.whole_seconds());
}

}  // namespace trainer
