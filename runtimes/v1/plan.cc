// A reconcile of a V1 job follows the order of pkg/controller.v1/common/job.go, ReconcileJobs.
#include "runtimes/v1/plan.hh"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/saturating.hh"
#include "runtimes/lifecycle/finished_marker.hh"
#include "runtimes/v1/policies.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1 {
namespace {

bool is_owned(const V1Job& job) {
  return !job.metadata.deletion_timestamp &&
         job.spec.runPolicy.managedBy.value_or(std::string(kManager)) == kManager;
}

void mark(V1JobContext& context) {
  const V1Job& job = context.observed.job;
  if (auto action = mark_finished(context.framework.resource, job.metadata, write(job.status)))
    context.plan.actions.push_back(std::move(*action));
}

void finish(V1JobContext& context) {
  context.plan.memory = kube::Plan::Memory::kForget;
  clean_up_finished(context);
  expire(context);
  if (context.observed.settings.marks_finished && !context.plan.counts.deleted) mark(context);
  if (!context.is_true(kSucceeded) || !context.status.replicaStatuses) return;
  for (auto& [role, counters] : *context.status.replicaStatuses)
    counters.succeeded =
        kube::saturating_add(counters.succeeded, std::exchange(counters.active, 0));
}

// One reconcile creates no more than this. The bound is on what is made, since a template may have
// megabytes, and a pod object may contain the names of all others.
constexpr Batch kBatch{.objects = 1'000, .weight = 100'000, .generated = std::int64_t{16} << 20};

// Counters and conditions follow from the pods.
void update_status(V1JobContext& context) {
  count_pods(context);
  restart_failed_pods(context);
  if (!context.status.startTime) context.status.startTime = context.observed.now.whole_seconds();
  context.framework.update_status(context);
  context.status.replicaStatuses.emplace();
  for (const RoleState& role : context.roles)
    context.status.replicaStatuses->emplace(role.name, role.counters);
  if (context.framework.counts_all_roles)
    for (const std::string_view role : context.framework.roles)
      context.status.replicaStatuses->try_emplace(std::string(role));
}

void refuse(V1JobContext& context, const kube::FieldErrors& errors) {
  context.relay("Warning", context.reason_of("FailedValidation"),
                fmt::format("{} failed validation because {}", context.framework.resource.kind,
                            kube::to_string(errors)));
}

bool has_pods_that_end(const Observed& observed) {
  return std::any_of(observed.pods.begin(), observed.pods.end(),
                     [](const V1PodView* pod) { return pod->is_deleting; });
}

// `invalid` has the errors of a job that no webhook checks. Such a job is only stopped.
void run(V1JobContext& context, const kube::FieldErrors& invalid) {
  if (context.is_finished()) return finish(context);
  context.set_condition(
      kCreated, true, kCreated,
      fmt::format("{} {} is created.", context.framework.resource.kind, context.name()));
  const auto sync_dependents = [&context] {
    return !context.framework.sync_dependents || context.framework.sync_dependents(context);
  };
  if (context.job.is_suspended()) {
    if (invalid.empty()) sync_dependents();
    return suspend(context);
  }
  // The old pods would count as failures of the new run, and they have the names of the new ones.
  if (context.is_true(kSuspended) && has_pods_that_end(context.observed))
    return context.relay("Normal", context.reason_of("WaitsForPods"),
                         fmt::format("{} {} is resumed once the pods of its last run have ended",
                                     context.framework.resource.kind, context.name()));
  resume(context);
  relay_troubles(context);
  record_first_failure(context);
  if (exceeds_limits(context)) {
    context.plan.status_time = kube::Plan::StatusTime::kBeforeActions;
    return clean_up_finished(context);
  }
  if (!invalid.empty()) return refuse(context, invalid);
  if (context.is_too_large)
    return refuse(context, {*too_large(context.framework, context.job, context.observed.settings)});
  // An autoscaler does not wait for the gang; the other objects of an MPIJob do.
  const bool may_start = sync_pod_group(context);
  if (!may_start && !context.framework.lone_role.empty()) return;
  if (!sync_dependents() || !may_start) return;
  update_status(context);
  if (context.is_finished()) {
    // A job that ends gets no new pod. It is cleaned up in the next reconcile, which sees the
    // status of this one. But a cleanPodPolicy does not keep the pods by which the job was scaled
    // down.
    if (!context.leaves_pods) remove_surplus(context);
    context.plan.status_time = kube::Plan::StatusTime::kBeforeActions;
    return context.plan.requeue_within(std::chrono::milliseconds(0));
  }
  if (!context.leaves_pods) sync_pods(context, kBatch);
}

kube::FieldErrors unseen_errors(const Observed& observed, bool is_created) {
  if (observed.framework.has_webhook) return {};
  const auto validate = is_created ? validate_stored : validate_create;
  return validate(observed.framework, observed.job, observed.settings).errors;
}

V1JobPlan restore_status(const Observed& observed, const JobStatus& status) {
  V1JobPlan plan;
  plan.relayed = observed.relayed.value_or(std::unordered_set<std::uint64_t>());
  plan.status_patch =
      kube::Json::object({{"status", kube::merge_diff(write(observed.job.status), write(status))}});
  plan.events.push_back(restored_event());
  return plan;
}

}  // namespace

std::optional<JobStatus> status_before_restore(const Framework& framework, const V1Job& job) {
  if (!job.status.conditions.empty()) return std::nullopt;
  auto marked = marked_status(job.metadata);
  if (!marked) return std::nullopt;
  const auto restored =
      read_job(kube::Json::object({{"status", std::move(*marked)}}), framework.replica_specs);
  const bool is_finished =
      restored && (restored->status.is_true(kSucceeded) || restored->status.is_true(kFailed));
  return is_finished ? std::optional(restored->status) : std::nullopt;
}

StatusExtensions::StatusExtensions(const JobStatus& status)
    : restarts(status.restarts),
      restartedPods(status.restartedPods),
      firstFailure(status.firstFailure) {}

std::optional<V1Job> with_extensions(const V1Job& job, const StatusExtensions& last) {
  if (last.empty() || !StatusExtensions(job.status).empty()) return std::nullopt;
  V1Job with = job;
  with.status.restarts = last.restarts;
  with.status.restartedPods = last.restartedPods;
  with.status.firstFailure = last.firstFailure;
  return with;
}

V1JobPlan plan(const Observed& observed) {
  const Framework& framework = observed.framework;
  if (!is_owned(observed.job)) return {};
  // Admission allows a job without roles. It is never reconciled.
  if (observed.job.spec.replicaSpecs.empty() && framework.has_webhook) return {};
  if (const auto status = status_before_restore(framework, observed.job))
    return restore_status(observed, *status);
  V1JobContext context(observed);
  const bool is_created = context.is_true(kCreated);
  const kube::FieldErrors invalid = unseen_errors(observed, is_created);
  // A job that has been invalid from the beginning gets an event, and no status.
  if (!invalid.empty() && !is_created) {
    refuse(context, invalid);
    return std::move(context.plan);
  }
  run(context, invalid);
  if (!context.plan.needs_objects.empty()) {
    V1JobPlan needs;
    needs.needs_objects = std::move(context.plan.needs_objects);
    needs.relayed = observed.relayed.value_or(std::unordered_set<std::uint64_t>());
    return needs;
  }
  report_refusal(context);
  finish_status(context);
  context.plan.extensions = StatusExtensions(context.status);
  return std::move(context.plan);
}

std::vector<kube::Json> all_children(const Framework& framework, const V1Job& job,
                                     const Settings& settings) {
  V1Job running = job;
  running.spec.runPolicy.suspend = false;
  const kube::NamedObjects none;
  const Observed observed{framework, running, {}, {}, none, {}, {}, settings, {}};
  V1JobContext context(observed);
  if (context.is_too_large) return {};
  sync_pod_group(context);
  if (framework.sync_dependents) framework.sync_dependents(context);
  sync_pods(context, Batch());
  std::vector<kube::Json> children;
  for (kube::Action& action : context.plan.actions) children.push_back(std::move(action.body));
  return children;
}

}  // namespace trainer::v1
