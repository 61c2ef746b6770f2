// A job is suspended and resumed here (pkg/controller.v1/common/job.go, ReconcileJobs).
#include <fmt/format.h>

#include "runtimes/v1/policies.hh"

namespace trainer::v1 {

void suspend(V1JobContext& context) {
  remove_children(context);
  remove_pod_group(context);
  if (context.status.replicaStatuses)
    for (auto& [role, counters] : *context.status.replicaStatuses) counters.active = 0;
  const std::string text =
      fmt::format("{} {} is suspended.", context.framework.resource.kind, context.name());
  if (context.is_true(kRunning)) context.set_condition(kRunning, false, kSuspended, text);
  if (context.is_true(kSuspended)) return;
  // Another job may take the name of its Service until it is resumed.
  context.plan.memory = kube::Plan::Memory::kForget;
  context.set_condition(kSuspended, true, kSuspended, text);
  // The status is written before the pods are deleted. Otherwise a job that is resumed meanwhile
  // would not know that its pods end because it was suspended.
  context.plan.status_time = kube::Plan::StatusTime::kBeforeActions;
  context.report("Normal", context.reason_of(kSuspended), text);
}

void resume(V1JobContext& context) {
  if (!context.is_true(kSuspended)) return;
  const std::string text =
      fmt::format("{} {} is resumed.", context.framework.resource.kind, context.name());
  context.set_condition(kSuspended, false, "Resumed", text);
  context.report("Normal", context.reason_of("Resumed"), text);
  context.status.startTime = context.observed.now.whole_seconds();
  // The pods of the last run no longer count, also while the new ones wait for their gang.
  if (context.status.replicaStatuses)
    for (auto& [role, counters] : *context.status.replicaStatuses)
      counters.active = counters.succeeded = counters.failed = 0;
  // A new run has a budget of its own, and its own first failure.
  context.status.restarts = 0;
  context.status.firstFailure.reset();
}

}  // namespace trainer::v1
