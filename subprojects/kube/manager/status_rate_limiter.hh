// The limiter decides when a status that differs only in counters is written.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

#include "kube/manager/pacing.hh"

namespace kube {

// A difference waits briefly for related ones (a Job's, its Pods'), so that one write has them all.
// If the counters of an object keep changing, they are written once in an interval, after a burst
// (see Pacing). Concurrency: one thread.
class StatusRateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Returns how long a difference in the counters of `uid`, seen at `now`, must still wait if it
  // waits for `window` in all. Zero says to write it now; this call counts as a write.
  std::chrono::milliseconds delay(const std::string& uid, Time now,
                                  std::chrono::milliseconds window) {
    using std::chrono::milliseconds;
    Object& object = changed_object(uid, now);
    // Each write moves `next` by one interval. `next` is never further in the past than a burst.
    object.next = std::max(object.next, now - Pacing::kStatusInterval * (Pacing::kStatusBurst - 1));
    const auto due = std::max(*object.waiting + window, object.next);
    const auto left = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(due - now));
    if (left.count() == 0) object.next += Pacing::kStatusInterval;
    return left;
  }
  // A child of `uid` has changed at `now`: if a difference in counters follows, it waits since
  // then.
  void changed(const std::string& uid, Time now) { changed_object(uid, now); }
  // A status was written, or a plan found no difference. `planned` is the time of that plan. Any
  // difference at that time need not wait any more.
  void clear_waiting(const std::string& uid, Time planned) {
    const auto at = objects_.find(uid);
    if (at == objects_.end()) return;
    auto& waiting = at->second.waiting;
    if (waiting && *waiting <= planned) waiting.reset();
  }
  // The object was deleted.
  void forget(const std::string& uid) { objects_.erase(uid); }

 private:
  struct Object {
    std::optional<Time> waiting;  // a difference waits since this time
    Time next{};                  // the next one may be written at this time
  };
  Object& changed_object(const std::string& uid, Time now) {
    Object& object = objects_[uid];
    if (!object.waiting) object.waiting = now;
    return object;
  }
  std::unordered_map<std::string, Object> objects_;
};

}  // namespace kube
