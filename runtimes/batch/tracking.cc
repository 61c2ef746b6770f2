// Each pod that has ended is counted once: its uid, or its index, is written into the status; then
// its finalizer is removed; then the uid leaves the status, and a counter has one more
// (pkg/controller/job/job_controller.go, trackJobStatusAndRemoveFinalizers).
#include <algorithm>
#include <utility>

#include "runtimes/batch/policies.hh"

namespace trainer::batch {
namespace {

using kube::Json;

// This many uids keep a status below 20 KB. The next plan goes on.
constexpr std::size_t kMaxUncounted = 500;

// Adds the uids of pods whose finalizer is gone to the counter; returns the others.
Json settle(const UidSet& uncounted, const UidSet& tracked, Json& status,
            std::string_view counter) {
  Json left = Json::array();
  std::int64_t settled = 0;
  for (const std::string& uid : uncounted) {
    if (tracked.contains(uid))
      left.push_back(uid);
    else
      ++settled;
  }
  if (settled > 0) status.set(counter, status.get_int(counter) + settled);
  return left;
}

bool is_counted_failure(const Context& context, const BatchPodView& pod) {
  const bool ends_with_job = context.verdict && !context.verdict->is_success;
  if (!context.is_failed(pod) && !ends_with_job) return false;
  return context.is_new(pod, context.uncounted_failed) &&
         match_pod_failure_policy(context.job, pod).is_counted;
}

void set_or_erase(Json& object, std::string_view name, Json value) {
  if (value.empty() || value == Json(0))
    object.erase(name);
  else
    object.set(name, std::move(value));
}

void write_indexes(Context& context) {
  if (!context.job.is_indexed) return;
  set_or_erase(context.status, "succeeded", context.succeeded_indexes.total());
  set_or_erase(context.status, "completedIndexes", context.succeeded_indexes.to_string());
  if (context.job.backoff_limit_per_index)
    context.status.set("failedIndexes", context.failed_indexes.to_string());
}

}  // namespace

void count_pods(Context& context) {
  const Json& stored = context.job.status();
  const auto number = [](auto count) { return static_cast<std::int32_t>(count); };
  context.succeeded =
      number(stored.get_int("succeeded")) + number(context.uncounted_succeeded.size());
  context.failed = number(stored.get_int("failed")) + number(context.uncounted_failed.size());
  context.active_count = number(context.active.size());
  for (const BatchPodView* pod : context.pods) {
    if (pod->is_active() && pod->is_ready) ++context.ready;
    if (context.is_terminating(*pod)) ++context.terminating;
    if (pod->phase == "Succeeded" && context.is_new(*pod, context.uncounted_succeeded))
      ++context.succeeded;
    if (context.is_failed(*pod) && context.is_new(*pod, context.uncounted_failed) &&
        match_pod_failure_policy(context.job, *pod).is_counted)
      ++context.failed;
  }
  if (context.job.is_indexed) read_indexes(context);
}

void track_pods(Context& context) {
  UidSet tracked;
  for (const BatchPodView* pod : context.pods)
    if (pod->is_tracked) tracked.insert(pod->uid);
  Json succeeded = settle(context.uncounted_succeeded, tracked, context.status, "succeeded");
  Json failed = settle(context.uncounted_failed, tracked, context.status, "failed");
  const std::size_t before = succeeded.size() + failed.size();
  std::size_t released = 0;
  for (const BatchPodView* pod : context.pods) {
    if (!pod->is_tracked || !can_release(context, *pod)) continue;
    if (released++ == kMaxUncounted) break;
    if (pod->phase == "Succeeded") {
      if (!context.job.is_indexed && context.is_new(*pod, context.uncounted_succeeded))
        succeeded.push_back(pod->uid);
    } else if (is_counted_failure(context, *pod)) {
      failed.push_back(pod->uid);
    }
    context.release(*pod, kSecond);
  }
  // A pod may be gone once its finalizer is removed, so the status that counts it is written first.
  if (released > 0 || context.verdict)
    context.plan.status_time = kube::Plan::StatusTime::kBeforeActions;
  if (succeeded.size() + failed.size() > before)
    context.plan.status_time = kube::Plan::StatusTime::kBeforeActions;
  write_indexes(context);
  Json uncounted = Json::object();
  set_or_erase(uncounted, "succeeded", std::move(succeeded));
  set_or_erase(uncounted, "failed", std::move(failed));
  context.status.set("uncountedTerminatedPods", std::move(uncounted));
  set_or_erase(context.status, "active", context.active_count);
  context.status.set("ready", context.ready).set("terminating", context.terminating);
}

}  // namespace trainer::batch
