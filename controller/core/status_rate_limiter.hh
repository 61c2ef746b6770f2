// When a difference in counters alone is worth a write.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

namespace trainer {

// A difference waits a moment for what belongs to it (a Job, its pods), so that both are one write,
// and an object whose counters keep changing is written once an interval. A few may be written
// sooner: a small job changes its counters a handful of times in all, and Kueue waits for them.
// Concurrency: one thread.
class StatusRateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kInterval{1'000};
  static constexpr int kBurst = 3;

  // How long a difference in the counters of `uid`, seen at `now`, must still wait when it is to
  // wait for `window` in all. Zero: it is to be written now, which counts as one of the writes.
  std::chrono::milliseconds wait(const std::string& uid, Time now,
                                 std::chrono::milliseconds window);
  // What `uid` counts has changed at `now`: a difference that comes of it waits since then.
  void changed(const std::string& uid, Time now);
  // No difference known at `planned` waits any more: a status was written, with its counters, or
  // there was none.
  void settled(const std::string& uid, Time planned);
  // The object is gone.
  void forget(const std::string& uid) { objects_.erase(uid); }

 private:
  struct Object {
    std::optional<Time> waiting;  // since when a difference does
    Time next{};                  // when the next one may be written
  };
  Object& changed_object(const std::string& uid, Time now);
  std::unordered_map<std::string, Object> objects_;
};

}  // namespace trainer
