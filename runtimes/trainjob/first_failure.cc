#include "runtimes/trainjob/first_failure.hh"

#include "runtimes/lifecycle/failure.hh"
#include "runtimes/trainjob/nodes.hh"

namespace trainer {
namespace {

bool is_earlier(const std::optional<kube::Time>& a, const std::optional<kube::Time>& b) {
  return a && (!b || *a < *b);
}

// Failures are ordered by attempt, then by time. Names decide between pods that failed within the
// same second, so that the outcome does not depend on the order of watch events.
bool goes_before(const PodView& a, const PodView& b) {
  if (a.attempt != b.attempt) return a.attempt > b.attempt;
  if (a.failure->finished_at != b.failure->finished_at)
    return is_earlier(a.failure->finished_at, b.failure->finished_at);
  return a.name < b.name;
}

}  // namespace

std::optional<FirstFailure> first_failure(const std::optional<FirstFailure>& recorded,
                                          const JobSet& jobset,
                                          const std::vector<const PodView*>& pods) {
  const PodView* first = nullptr;
  for (const PodView* pod : pods) {
    if (!pod || !pod->failure || !is_pod_of(*pod, jobset)) continue;
    if (!first || goes_before(*pod, *first)) first = pod;
  }
  if (!first) return recorded;
  if (!recorded || first->attempt > recorded->attempt) return record_failure(*first);
  if (first->attempt == recorded->attempt &&
      is_earlier(first->failure->finished_at, recorded->time))
    return record_failure(*first);
  return recorded;
}

}  // namespace trainer
