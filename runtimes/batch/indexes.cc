// Indexed Jobs have a budget of failures for each index (backoffLimitPerIndex;
// pkg/controller/job/indexed_job_utils.go).
#include <algorithm>

#include "kube/model/pod_template.hh"
#include "runtimes/batch/policies.hh"

namespace trainer::batch {
namespace {

std::int64_t all_failures(const BatchPodView& pod) {
  return std::int64_t{pod.index_failures} + pod.ignored_index_failures;
}

bool is_index_failed(const Context& context, const BatchPodView& pod) {
  if (!context.is_failed(pod)) return false;
  const PolicyMatch match = match_pod_failure_policy(context.job, pod);
  return match.fails_index ||
         (match.is_counted && pod.index_failures >= *context.job.backoff_limit_per_index);
}

bool replaces(const BatchPodView& pod, const BatchPodView& other) {
  return all_failures(other) <= all_failures(pod) && other.finished <= pod.finished;
}

// Finds for each index that needs a new pod the failed pod whose counts the new one gets.
void find_replaced(Context& context) {
  IndexSet settled = context.succeeded_indexes;
  settled.add(context.failed_indexes);
  for (const BatchPodView* pod : context.active)
    if (pod->index) settled.add(*pod->index);
  for (const BatchPodView* pod : context.pods) {
    if (!context.is_new(*pod, {}) || !context.is_failed(*pod) || settled.has(*pod->index)) continue;
    const BatchPodView*& last = context.replaced[*pod->index];
    if (last == nullptr || replaces(*pod, *last)) last = pod;
  }
}

}  // namespace

void read_indexes(Context& context) {
  const std::int32_t completions = context.job.completions.value_or(0);
  const kube::Json& stored = context.job.status();
  context.counted_indexes = IndexSet::parse(stored.get_string("completedIndexes"), completions);
  context.succeeded_indexes = context.counted_indexes;
  for (const BatchPodView* pod : context.pods)
    if (pod->phase == "Succeeded" && context.is_new(*pod, {}))
      context.succeeded_indexes.add(*pod->index);
  context.succeeded = context.succeeded_indexes.total();
  if (!context.job.backoff_limit_per_index) return;
  context.failed_indexes = IndexSet::parse(stored.get_string("failedIndexes"), completions);
  for (const BatchPodView* pod : context.pods)
    if (context.is_new(*pod, {}) && is_index_failed(context, *pod))
      context.failed_indexes.add(*pod->index);
  find_replaced(context);
}

bool can_release(const Context& context, const BatchPodView& pod) {
  if (context.verdict || pod.phase == "Succeeded") return true;
  if (!context.is_failed(pod)) return false;
  const auto at = pod.index ? context.replaced.find(*pod.index) : context.replaced.end();
  return at == context.replaced.end() || at->second != &pod;
}

std::vector<std::int32_t> ready_indexes(Context& context,
                                        const std::vector<std::int32_t>& indexes) {
  std::vector<std::int32_t> ready;
  std::optional<std::chrono::microseconds> shortest;
  for (const std::int32_t index : indexes) {
    const auto at = context.replaced.find(index);
    const auto wait = at == context.replaced.end()
                          ? std::chrono::microseconds(0)
                          : remaining_backoff(all_failures(*at->second) + 1, at->second->finished,
                                              context.observed.now);
    if (wait.count() == 0)
      ready.push_back(index);
    else
      shortest = shortest ? std::min(*shortest, wait) : wait;
  }
  if (shortest) context.plan.requeue_within(*shortest);
  return ready;
}

void set_failure_counts(const Context& context, std::int32_t index, kube::Json& pod) {
  std::int64_t failures = 0;
  std::int64_t ignored = 0;
  if (const auto at = context.replaced.find(index); at != context.replaced.end()) {
    failures = at->second->index_failures;
    ignored = at->second->ignored_index_failures;
    ++(match_pod_failure_policy(context.job, *at->second).is_counted ? failures : ignored);
  }
  kube::StringMap annotations{{std::string(kIndexFailureCountKey), std::to_string(failures)}};
  if (ignored > 0) annotations.emplace(kIndexIgnoredFailureCountKey, std::to_string(ignored));
  kube::add_annotations(pod, annotations);
}

}  // namespace trainer::batch
