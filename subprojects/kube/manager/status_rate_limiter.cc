#include "kube/manager/status_rate_limiter.hh"

#include <algorithm>

#include "kube/manager/pacing.hh"

namespace kube {

StatusRateLimiter::Object& StatusRateLimiter::changed_object(const std::string& uid, Time now) {
  Object& object = objects_[uid];
  if (!object.waiting) object.waiting = now;
  return object;
}

std::chrono::milliseconds StatusRateLimiter::delay(const std::string& uid, Time now,
                                                   std::chrono::milliseconds window) {
  using std::chrono::milliseconds;
  Object& object = changed_object(uid, now);
  // Each write moves `next` by one interval. It may be in the past by the burst, never more.
  object.next = std::max(object.next, now - Pacing::kStatusInterval * (Pacing::kStatusBurst - 1));
  const auto due = std::max(*object.waiting + window, object.next);
  const auto left = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(due - now));
  if (left.count() == 0) object.next += Pacing::kStatusInterval;
  return left;
}

void StatusRateLimiter::changed(const std::string& uid, Time now) {
  changed_object(uid, now);
}

void StatusRateLimiter::clear_waiting(const std::string& uid, Time planned) {
  const auto at = objects_.find(uid);
  if (at == objects_.end()) return;
  auto& waiting = at->second.waiting;
  if (waiting && *waiting <= planned) waiting.reset();
}

}  // namespace kube
