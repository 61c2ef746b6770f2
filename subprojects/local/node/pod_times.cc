// This file decides for how long a pod may run, and how long its end may take.
#include <algorithm>
#include <chrono>

#include "kube/model/pod_template.hh"
#include "local/node/pod_runner.hh"

namespace trainer::node {

bool PodRunner::is_deleting() const {
  return pod_.get("metadata").find("deletionTimestamp") != nullptr;
}

int PodRunner::grace() const {
  return static_cast<int>(
      pod_.get("metadata").get_int("deletionGracePeriodSeconds", kube::kDefaultGraceSeconds));
}

int PodRunner::own_grace() const {
  return static_cast<int>(kube::termination_grace(pod_));
}

void PodRunner::note_start() {
  const auto start = kube::Time::parse(pod_.get("status").get_string("startTime"));
  if (started_ || !start) return;
  const kube::Clock& clock = node_.client.clock();
  started_ = clock.steady() - std::max(clock.now() - *start, std::chrono::microseconds(0));
}

// Returns when its activeDeadlineSeconds run out, by the present setting of the clock.
std::optional<kube::Time> PodRunner::deadline() const {
  const auto seconds = active_deadline_of(pod_);
  if (!seconds || !started_) return std::nullopt;
  const kube::Clock& clock = node_.client.clock();
  // A user has written the number, so the sum may not overflow.
  constexpr std::chrono::hours kLongest(24 * 365 * 100);
  const auto left =
      std::min<std::chrono::seconds>(*seconds, kLongest) - (clock.steady() - *started_);
  return clock.now() + std::chrono::duration_cast<std::chrono::microseconds>(left);
}

}  // namespace trainer::node
