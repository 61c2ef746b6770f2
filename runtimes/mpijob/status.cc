// The status of a job (mpi-operator, pkg/controller: updateMPIJobStatus).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/patch.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/mpijob/context.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;

constexpr std::string_view kSuspendedReason = "MPIJobSuspended";
constexpr std::string_view kRunningReason = "MPIJobRunning";
constexpr std::string_view kFailedReason = "MPIJobFailed";
// A child that is refused is tried again at this interval: what is in its way may not be watched.
constexpr std::chrono::seconds kBlockedInterval{10};

void mark_suspension(MPIJobContext& context) {
  if (context.is_suspended()) {
    if (context.set_condition(kSuspended, true, kSuspendedReason, "MPIJob suspended"))
      context.report("Normal", kSuspendedReason, "MPIJob suspended");
    return;
  }
  if (!context.status.find(kSuspended)) return;
  if (context.set_condition(kSuspended, false, "MPIJobResumed", "MPIJob resumed")) {
    context.status.startTime = context.observed.now.whole_seconds();
    context.report("Normal", "MPIJobResumed", "MPIJob resumed");
  }
}

const v1::V1PodView* newest_failed(const MPIJobContext& context) {
  const v1::V1PodView* newest = nullptr;
  for (const v1::V1PodView* pod : context.observed.launchers)
    if (pod->phase == "Failed" && (!newest || newest->created <= pod->created)) newest = pod;
  return newest;
}

void succeed(MPIJobContext& context, const Json& launcher) {
  const std::string message = context.title() + " successfully completed.";
  if (!context.status.completionTime)
    context.status.completionTime =
        kube::Time::parse(launcher.get("status").get_string("completionTime"))
            .value_or(context.observed.now.whole_seconds());
  if (!context.set_condition(kSucceeded, true, "MPIJobSucceeded", message)) return;
  context.report("Normal", "MPIJobSucceeded", message);
  context.plan.events.back().end = kube::PlannedEvent::End::kSucceeded;
  context.plan.counts_succeeded = true;
}

void fail(MPIJobContext& context, const Json& condition) {
  std::string reason(condition.get_string("reason"));
  std::string message(condition.get_string("message"));
  if (reason.empty()) reason = kFailedReason;
  if (message.empty()) message = context.title() + " has failed";
  if (reason == reasons::kBackoffLimitExceeded.name) {
    if (const v1::V1PodView* pod = newest_failed(context)) {
      reason += "/" + pod->reason;
      message += ": " + pod->message;
    }
  }
  if (!context.status.completionTime)
    context.status.completionTime = context.observed.now.whole_seconds();
  if (!context.set_condition(kFailed, true, reason, message)) return;
  context.report("Warning", reason, message);
  context.plan.events.back().end = kube::PlannedEvent::End::kFailed;
  context.plan.counts_failed = true;
}

// Returns how many of the launcher's pods run.
std::int32_t count_launcher(MPIJobContext& context) {
  const auto& launcher = context.observed.launcher;
  if (!launcher) return 0;
  const auto running = static_cast<std::int32_t>(
      std::ranges::count(context.observed.launchers, "Running", &v1::V1PodView::phase));
  v1::ReplicaStatus& counters = (*context.status.replicaStatuses)[std::string(kLauncher)];
  counters.failed = static_cast<std::int32_t>(launcher->get("status").get_int("failed"));
  if (find_end(context, "Complete")) {
    counters.succeeded = 1;
    succeed(context, *launcher);
  } else if (const Json* failure = find_end(context, "Failed")) {
    fail(context, *failure);
  } else {
    counters.active = running;
  }
  return running;
}

// Returns whether all workers run. Those of a job that is suspended or whose launcher has ended do
// not count.
bool count_workers(MPIJobContext& context) {
  v1::ReplicaStatus& counters = (*context.status.replicaStatuses)[std::string(kWorker)];
  if (context.is_suspended() || is_launcher_over(context)) return false;
  std::int32_t evicted = 0;
  for (const v1::V1PodView* pod : context.workers) {
    if (!pod) continue;
    counters.active += pod->phase == "Running" ? 1 : 0;
    counters.succeeded += pod->phase == "Succeeded" ? 1 : 0;
    counters.failed += pod->phase == "Failed" ? 1 : 0;
    evicted += pod->phase == "Failed" && pod->reason == "Evicted" ? 1 : 0;
  }
  if (evicted > 0) {
    const std::string message =
        fmt::format("{}/{} workers are evicted", evicted, context.workers.size());
    context.set_condition(kFailed, true, "MPIJobEvicted", message);
    context.relay("Warning", "MPIJobEvicted", message);
  }
  return counters.active == std::ssize(context.workers);
}

void mark_running(MPIJobContext& context, bool is_running) {
  const bool has_ended = context.is_true(kSucceeded) || context.is_true(kFailed);
  if (context.is_suspended() && !has_ended) {
    context.set_condition(kRunning, false, kSuspendedReason, context.title() + " is suspended.");
  } else if (is_running && !has_ended) {
    context.set_condition(kRunning, true, kRunningReason, context.title() + " is running.");
    context.relay("Normal", kRunningReason, context.title() + " is running");
  }
  if (!context.is_finished() || context.status.find(kRunning)) return;
  context.set_condition(kRunning, false, kRunningReason,
                        context.title() + " is finished but Running condition was never set.");
  v1::JobCondition& condition = context.status.conditions.back();
  condition.lastUpdateTime = condition.lastTransitionTime = context.status.completionTime;
}

// The condition of a refused child is the first one: clients look at the last.
void report_refusal(MPIJobContext& context) {
  auto& conditions = context.status.conditions;
  std::erase_if(conditions, [](const auto& each) { return each.type == kReplicaFailure; });
  const kube::Refusal* const refusal = context.observed.refusal;
  if (!refusal || context.is_finished()) return;
  if (refusal->code == kube::ErrorCode::kAlreadyExists) {
    context.relay("Warning", "ErrResourceExists",
                  fmt::format("Resource \"{}\" of Kind \"{}\" already exists and is not managed by "
                              "MPIJob",
                              refusal->name, refusal->resource.kind));
    context.plan.due_within(kBlockedInterval);
  } else {
    const std::string_view what = refusal->resource.kind == "Pod" ? "worker pod" : "launcher pod";
    context.relay("Warning", kFailedReason,
                  fmt::format("{} created failed: {}", what, refusal->message));
  }
  const WaitingCause cause = cause_of_refusal(*refusal);
  context.set_condition(kReplicaFailure, true, cause.reason, cause.message);
  std::ranges::rotate(conditions, std::prev(conditions.end()));
}

}  // namespace

void begin_status(MPIJobContext& context) {
  const std::string message = context.title() + " is created.";
  if (context.status.conditions.empty()) {
    context.set_condition(kCreated, true, "MPIJobCreated", message);
    context.report("Normal", "MPIJobCreated", message);
    context.plan.counts_created = true;
  }
  if (!context.is_suspended() && !context.status.startTime)
    context.status.startTime = context.observed.now.whole_seconds();
}

void update_status(MPIJobContext& context) {
  mark_suspension(context);
  context.status.replicaStatuses.emplace();
  const std::int32_t launchers = count_launcher(context);
  const bool all_workers_run = count_workers(context);
  mark_running(context, launchers > 0 && all_workers_run);
}

void finish_status(MPIJobContext& context) {
  report_refusal(context);
  const v1::JobStatus& before = context.observed.job.status;
  context.status.keep_times(before);
  if (context.status == before) return;
  Json difference = kube::merge_diff(v1::write(before), v1::write(context.status));
  if (difference.is_null()) return;
  if (difference.size() == 1 && difference.find("replicaStatuses"))
    context.plan.status_change = kube::Plan::StatusChange::kCounters;
  context.plan.status_patch = Json::object({{"status", std::move(difference)}});
}

}  // namespace trainer::mpijob
