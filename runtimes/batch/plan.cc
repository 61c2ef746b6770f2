// A reconcile of a Job follows the order of pkg/controller/job/job_controller.go, syncJob.
#include "runtimes/batch/plan.hh"

#include <algorithm>
#include <utility>

#include "kube/model/patch.hh"
#include "runtimes/batch/policies.hh"

namespace trainer::batch {
namespace {

using kube::Json;

// The Job of such a pod is gone, or has another uid: no Job will count the pod. So its finalizer is
// removed here, or it could never be deleted.
void release_orphans(Context& context) {
  for (const BatchPodView* pod : context.observed.pods)
    if (pod->is_of_job && pod->controller_uid != context.job.metadata.uid)
      context.release(*pod, kFirst);
}

void release_all(Context& context) {
  for (const BatchPodView* pod : context.pods) context.release(*pod, kFirst);
}

bool is_minor(const Json& difference) {
  const auto& members = difference.as_object();
  return std::all_of(members.begin(), members.end(), [](const auto& member) {
    return member.first == "active" || member.first == "ready" || member.first == "terminating";
  });
}

void write_status(Context& context) {
  Json difference = kube::merge_diff(
      context.job.status().is_object() ? context.job.status() : Json::object(), context.status);
  if (difference.is_null()) return;
  if (is_minor(difference)) context.plan.status_change = kube::Plan::StatusChange::kCounters;
  context.plan.status_patch = Json::object({{"status", std::move(difference)}});
}

void run(Context& context) {
  count_pods(context);
  if (!context.job.is_suspended && !context.status.find("startTime"))
    context.status.set("startTime", context.observed.now.to_string());
  context.plan.backoff = update_backoff(context);
  decide(context);
  if (context.verdict) {
    delete_active_pods(context);
  } else {
    manage_pods(context);
    decide_completion(context);
    if (!context.verdict) sync_suspension(context);
  }
  track_pods(context);
  write_verdict(context);
  write_status(context);
}

}  // namespace

BatchJobPlan plan(const Observed& observed) {
  // This replaces a missing Job. It has no uid, so pods without a controller count as its own.
  static const BatchJob kNone = read_job(std::make_shared<const Json>(Json::object()));
  Observed known = observed;
  if (known.job == nullptr) known.job = &kNone;
  Context context(known);
  if (context.job.is_foreign()) return std::move(context.plan);
  release_orphans(context);
  if (observed.job == nullptr || context.job.is_deleting() || context.job.is_finished()) {
    release_all(context);
    if (context.job.is_finished()) expire(context);
  } else {
    run(context);
  }
  return std::move(context.plan);
}

}  // namespace trainer::batch
