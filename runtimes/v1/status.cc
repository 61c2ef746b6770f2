// This file writes conditions and the first failure, and decides which parts of a status are
// written (pkg/controller.v1/*/..._controller.go, UpdateJobStatus).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/visible_text.hh"
#include "runtimes/lifecycle/failure.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

// Failures within this time belong to one incident: the other processes of a collective operation
// end when it times out.
constexpr std::chrono::minutes kIncident{30};

// A message of an API server or webhook that refuses a child has no limit of its own.
constexpr std::size_t kMaxMessage = 4'096;

void count_changes(V1JobContext& context) {
  const JobStatus& before = context.observed.job.status;
  const auto became = [&](std::string_view type) {
    return context.is_true(type) && !before.is_true(type);
  };
  context.plan.counts.created = became(kCreated);
  context.plan.counts.succeeded = became(kSucceeded);
  context.plan.counts.failed = became(kFailed);
}

}  // namespace

void set_running(V1JobContext& context, std::string message) {
  context.set_condition(kRunning, true, kRunning, std::move(message));
}

void set_restarting(V1JobContext& context, std::string message) {
  context.relay("Warning", context.reason_of(kRestarting), message);
  context.set_condition(kRestarting, true, kRestarting, std::move(message));
}

void succeed(V1JobContext& context, std::string message) {
  context.report("Normal", context.reason_of(kSucceeded), message);
  if (!context.status.completionTime)
    context.status.completionTime = context.observed.now.whole_seconds();
  context.set_condition(kSucceeded, true, kSucceeded, std::move(message));
}

void fail(V1JobContext& context, std::string message, std::string_view reason) {
  // If an exit code has failed the job already, its condition stays.
  context.report("Normal", context.reason_of(kFailed), message);
  if (!context.status.completionTime)
    context.status.completionTime = context.observed.now.whole_seconds();
  context.set_condition(kFailed, true, reason, std::move(message));
}

// Records the earliest failure of a pod that exists. The recorded failure, whose pod may be
// deleted, stays unless the other one is earlier or of a later incident.
void record_first_failure(V1JobContext& context) {
  auto& recorded = context.status.firstFailure;
  std::optional<FirstFailure> first;
  for (const RoleState& role : context.roles) {
    for (std::size_t i = 0; i < role.pods.size(); ++i) {
      const V1PodView* pod = role.pods[i];
      if (pod == nullptr || !pod->failure) continue;
      FirstFailure failure = record_failure(*pod);
      failure.job = role.type;
      failure.index = static_cast<std::int32_t>(i);
      if (!first || (failure.time && (!first->time || *failure.time < *first->time)))
        first = std::move(failure);
    }
  }
  if (!first) return;
  const bool is_earlier =
      recorded && first->time && recorded->time && *first->time < *recorded->time;
  const bool is_later =
      recorded && first->time && recorded->time && *first->time - *recorded->time > kIncident;
  if (!recorded || is_earlier || is_later) recorded = std::move(first);
}

void relay_troubles(V1JobContext& context) {
  for (const V1PodView* pod : context.observed.pods)
    for (const V1PodView::Trouble& trouble : pod->troubles)
      context.relay("Warning", trouble.reason.empty() ? "PodTrouble" : trouble.reason,
                    trouble.message);
}

// ReplicaFailure is the first condition, and exists only while a child is refused: the column STATE
// and some clients read the last condition.
void report_refusal(V1JobContext& context) {
  auto& conditions = context.status.conditions;
  std::erase_if(conditions, [](const auto& each) { return each.type == kReplicaFailure; });
  const auto* refusal = is_job_service_refused(context) ? nullptr : context.observed.refusal;
  const auto cause = refusal ? cause_of_refusal(*refusal) : std::move(context.blocked);
  if (!cause || context.is_finished()) return;
  JobCondition condition;
  condition.type = kReplicaFailure;
  condition.status = "True";
  condition.reason = cause->reason;
  condition.message = kube::visible_text(keep_head(cause->message, kMaxMessage));
  condition.lastUpdateTime = condition.lastTransitionTime = context.observed.now.whole_seconds();
  conditions.insert(conditions.begin(), std::move(condition));
}

void finish_status(V1JobContext& context) {
  const JobStatus& before = context.observed.job.status;
  context.status.keep_times(before);
  if (context.status == before) return;
  count_changes(context);
  Json difference = kube::merge_diff(write(before), write(context.status));
  if (difference.is_null()) return;
  if (difference.size() == 1 && difference.find("replicaStatuses") != nullptr)
    context.plan.status_change = kube::Plan::StatusChange::kCounters;
  context.plan.status_patch = Json::object({{"status", std::move(difference)}});
}

}  // namespace trainer::v1
