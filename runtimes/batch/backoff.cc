// A Job waits after failures before it makes the next pod (pkg/controller/job/backoff_utils.go).
#include <algorithm>

#include "runtimes/batch/policies.hh"

namespace trainer::batch {
namespace {

using std::chrono::microseconds;

constexpr std::chrono::seconds kFirstWait{10};
constexpr std::chrono::minutes kLongestWait{10};

}  // namespace

// Adds pods that are not counted yet, each once.
Backoff update_backoff(const Context& context) {
  Backoff backoff = context.observed.backoff;
  std::optional<kube::Time> last_success;
  for (const BatchPodView* pod : context.pods)
    if (pod->phase == "Succeeded" && context.is_new(*pod, context.uncounted_succeeded))
      last_success = last_success ? std::max(*last_success, pod->finished) : pod->finished;
  if (last_success) backoff.clear();
  for (const BatchPodView* pod : context.pods) {
    if (!context.is_failed(*pod) || !context.is_new(*pod, context.uncounted_failed)) continue;
    if (last_success && pod->finished <= *last_success) continue;
    const bool is_known = std::any_of(backoff.begin(), backoff.end(),
                                      [pod](const auto& one) { return one.first == pod->uid; });
    if (!is_known) backoff.emplace_back(pod->uid, pod->finished);
  }
  return backoff;
}

microseconds remaining_backoff(std::int64_t failures, kube::Time last, kube::Time now) {
  if (failures == 0) return microseconds(0);
  microseconds wait = kFirstWait;
  for (std::int64_t i = 1; i < failures && wait < kLongestWait; ++i) wait *= 2;
  wait = std::min<microseconds>(wait, kLongestWait);
  return std::max(wait - (now - last), microseconds(0));
}

microseconds remaining_backoff(const Backoff& backoff, kube::Time now) {
  kube::Time last;
  for (const auto& [uid, end] : backoff) last = std::max(last, end);
  return remaining_backoff(static_cast<std::int64_t>(backoff.size()), last, now);
}

}  // namespace trainer::batch
