// This file decides how many pods a Job has (pkg/controller/job/job_controller.go, manageJob).
#include <algorithm>
#include <tuple>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/batch/policies.hh"

namespace trainer::batch {
namespace {

// One plan creates or deletes at most this many pods.
constexpr std::size_t kMaxPods = 500;

std::int32_t wanted(const Context& context) {
  const BatchJob& job = context.job;
  if (job.is_suspended) return 0;
  if (!job.completions) return context.succeeded > 0 ? context.active_count : job.parallelism;
  return std::clamp(*job.completions - context.succeeded, 0, job.parallelism);
}

// Returns which of two active pods is deleted first: the one that has progressed less, else the
// newer one (pkg/controller, ActivePods).
bool is_deleted_before(const BatchPodView* a, const BatchPodView* b) {
  const auto rank = [](const BatchPodView& pod) {
    const int phase = pod.phase == "Running" ? 2 : pod.phase == "Unknown" ? 1 : 0;
    return std::tuple(!pod.node_name.empty(), phase, pod.is_ready, -pod.restarts);
  };
  if (rank(*a) != rank(*b)) return rank(*a) < rank(*b);
  return a->created != b->created ? a->created > b->created : a->name < b->name;
}

// Returns the active pods that are deleted. In an Indexed Job these are all that have no index of
// it, and all except one of each index. Further pods follow, until they are `at_least` so many.
std::vector<const BatchPodView*> surplus_pods(const Context& context, std::int32_t at_least) {
  std::vector<const BatchPodView*> left = context.active;
  std::sort(left.begin(), left.end(), is_deleted_before);
  std::vector<const BatchPodView*> surplus;
  if (context.job.is_indexed) {
    IndexSet taken;
    std::vector<const BatchPodView*> kept;
    for (auto at = left.rbegin(); at != left.rend(); ++at) {
      const bool is_kept = context.job.has_index((*at)->index) && !taken.has(*(*at)->index);
      if (is_kept) taken.add(*(*at)->index);
      (is_kept ? kept : surplus).push_back(*at);
    }
    left.assign(kept.rbegin(), kept.rend());
  }
  const auto more = static_cast<std::size_t>(std::max(at_least, 0));
  for (const BatchPodView* pod : left) {
    if (surplus.size() >= more) break;
    surplus.push_back(pod);
  }
  if (surplus.size() > kMaxPods) surplus.resize(kMaxPods);
  return surplus;
}

void create_pod(Context& context, std::optional<std::int32_t> index, int stage) {
  kube::Action& action = context.plan.actions.emplace_back();
  action.verb = kube::Action::Verb::kCreate;
  action.resource = kube::kPods;
  action.body = make_pod(context, index);
  action.key = kube::ObjectMeta::of(action.body).key();
  action.owner_uid = context.job.metadata.uid;
  action.failure_reason = "FailedCreate";
  action.stage = stage;
  context.note("SuccessfulCreate", "Created pod: " + action.key.name);
}

std::vector<std::int32_t> missing_indexes(Context& context, std::size_t count) {
  IndexSet settled = context.succeeded_indexes;
  settled.add(context.failed_indexes);
  for (const BatchPodView* pod : context.pods) {
    const bool holds_index =
        pod->is_active() || (context.job.replaces_only_failed && context.is_terminating(*pod));
    if (holds_index && pod->index) settled.add(*pod->index);
  }
  const auto missing = settled.first_missing(count, context.job.completions.value_or(0));
  return context.job.backoff_limit_per_index ? ready_indexes(context, missing) : missing;
}

// Creates batches of one pod, two, four, ..., each a stage: if one is refused, later ones are not
// tried (slowStartBatch of Kubernetes).
void create_pods(Context& context, std::size_t count) {
  std::vector<std::int32_t> indexes;
  if (context.job.is_indexed) {
    indexes = missing_indexes(context, count);
    count = indexes.size();
  }
  int stage = kCreations;
  for (std::size_t made = 0, batch_end = 1; made < count; ++made) {
    if (made == batch_end) {
      batch_end = 2 * batch_end + 1;
      ++stage;
    }
    create_pod(context, indexes.empty() ? std::nullopt : std::optional(indexes[made]), stage);
  }
}

}  // namespace

// The pods keep their finalizers until they are counted (tracking.cc).
void delete_active_pods(Context& context) {
  for (const BatchPodView* pod : context.active) context.delete_pod(*pod, kFirst);
}

void manage_pods(Context& context) {
  const std::int32_t want = wanted(context);
  const auto surplus = surplus_pods(context, context.active_count - want);
  for (const BatchPodView* pod : surplus) {
    // The pod does not count as failed: this plan deletes it.
    context.release(*pod, kFirst);
    context.delete_pod(*pod, kSecond);
  }
  if (!surplus.empty()) return;
  const std::int32_t held = context.job.replaces_only_failed ? context.terminating : 0;
  const std::int32_t missing = want - held - context.active_count;
  if (missing <= 0) return;
  if (!context.job.backoff_limit_per_index) {
    const auto wait = remaining_backoff(context.plan.backoff, context.observed.now);
    if (wait.count() > 0) return context.plan.requeue_within(wait);
  }
  create_pods(context, std::min(static_cast<std::size_t>(missing), kMaxPods));
}

}  // namespace trainer::batch
