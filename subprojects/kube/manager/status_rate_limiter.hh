// When a difference in counters alone is worth a write.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

namespace kube {

// A difference waits a moment for related ones (a Job's, its Pods'), so that they are one write,
// and an object whose counters keep changing is written once an interval, after a burst (see
// Pacing). Concurrency: one thread.
class StatusRateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // How long a difference in the counters of `uid`, seen at `now`, must still wait when it is to
  // wait for `window` in all. Zero: write it now; that counts as one of the writes.
  std::chrono::milliseconds delay(const std::string& uid, Time now,
                                  std::chrono::milliseconds window);
  // What `uid` counts has changed at `now`: a difference that results from it waits since then.
  void changed(const std::string& uid, Time now);
  // No difference known at `planned` waits any more: a status was written, with its counters, or
  // there was none.
  void settled(const std::string& uid, Time planned);
  // The object was deleted.
  void forget(const std::string& uid) { objects_.erase(uid); }

 private:
  struct Object {
    std::optional<Time> waiting;  // since when a difference waits
    Time next{};                  // when the next one may be written
  };
  Object& changed_object(const std::string& uid, Time now);
  std::unordered_map<std::string, Object> objects_;
};

}  // namespace kube
