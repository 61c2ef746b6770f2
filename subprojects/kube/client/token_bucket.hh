// The bucket limits how often something may be done, like client-go's flowcontrol. Pure.
#pragma once

#include <algorithm>
#include <chrono>

namespace kube {

// Guarantees: one in each interval; after a pause, `burst` at once (at least 1). Concurrency: one
// thread.
class TokenBucket {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using Time = std::chrono::steady_clock::time_point;

  TokenBucket(Duration interval, int burst) : interval_(interval), burst_(std::max(burst, 1)) {}
  // `qps` is the rate in a second, above 0.
  TokenBucket(double qps, int burst)
      : TokenBucket(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1 / qps)),
                    burst) {}

  // Returns from when on the next one may be done, which may be before `now`. It counts as done.
  Time take(Time now) {
    const Time at = next(now);
    next_ = at + interval_;
    return at;
  }
  // Returns whether one may be done now; then it counts as done.
  bool try_take(Time now) {
    const bool may = next(now) <= now;
    if (may) take(now);
    return may;
  }

 private:
  Time next(Time now) const { return std::max(next_, now - interval_ * (burst_ - 1)); }

  Duration interval_;
  int burst_;
  Time next_{};
};

}  // namespace kube
