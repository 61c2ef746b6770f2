#include "runtimes/trainjob/failure.hh"

#include <fmt/format.h>

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

FirstFailure record_failure(const PodView& pod) {
  FirstFailure failure;
  failure.pod = pod.name;
  failure.job = pod.replicated_job;
  failure.index = pod.index;
  failure.node = pod.node_name;
  failure.container = pod.failure->container;
  failure.exitCode = pod.failure->exit_code;
  failure.signal = pod.failure->signal;
  failure.reason = pod.failure->reason;
  failure.message = pod.failure->message;
  failure.attempt = pod.attempt;
  if (pod.failure->finished_at) failure.time = pod.failure->finished_at->whole_seconds();
  return failure;
}

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

std::string describe(const FirstFailure& failure) {
  std::string text = fmt::format("pod {}", failure.pod);
  if (failure.index)
    text += fmt::format(" ({} {})", failure.job.empty() ? "index" : failure.job, *failure.index);
  if (!failure.node.empty()) text += fmt::format(" on {}", failure.node);
  text += ": ";
  text += failure.container.empty() ? std::string("it")
                                    : fmt::format("container {}", failure.container);
  if (failure.exitCode) {
    text += fmt::format(" ended with exit code {}", *failure.exitCode);
  } else {
    text += " failed";
  }
  if (failure.signal) text += fmt::format(", signal {}", *failure.signal);
  if (!failure.reason.empty() && failure.reason != "Error")
    text += fmt::format(" ({})", failure.reason);
  return text;
}

}  // namespace trainer
