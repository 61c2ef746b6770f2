// The rules that say which ranks are slow while the job runs. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtimes/stall/verdict.hh"

namespace trainer::stall {

inline constexpr std::size_t kMaxNamedSlow = 16;

struct Straggler {
  std::int32_t rank = 0;
  std::string pod, node;
  double times = 0;  // its own time of a step in medians, when it was named
};

// Guarantees: a rank is named, or no longer named, only after it was slow, or was not, in each
// decision of a minute and of three of its heartbeats; one that has ended, or whose process is
// another one, is not named. The cost is linear in the ranks.
class Stragglers {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Call this while the job runs. Returns true if named() or is_known() has changed.
  bool decide(const std::map<std::int32_t, RankReport>& ranks, Time now);
  // Call this while the job does not run, or is another attempt. Returns the same.
  bool clear();

  // Returns kMaxNamedSlow at most, sorted by rank.
  const std::vector<Straggler>& named() const { return named_; }
  // Returns false until the ranks have been compared for longer than it takes to name one.
  bool is_known() const { return is_known_; }
  // An estimate of what this holds.
  std::size_t bytes() const;

 private:
  // The rank is slow and not named yet, or it is named and not slow any more.
  struct Change {
    Time since;
    std::int64_t sent = -1;  // the last heartbeat
    int heartbeats = 0;      // after the first
  };
  struct Due {
    double own = 0;
    std::int32_t rank = 0;
  };

  bool forget_gone(const std::map<std::int32_t, RankReport>& ranks);
  bool is_named(std::int32_t rank) const;
  bool has_lasted(std::int32_t rank, const RankReport& report, Time now);
  bool name(std::vector<Due> due, const std::map<std::int32_t, RankReport>& ranks, double median);

  std::map<std::int32_t, Change> changes_;
  std::vector<Straggler> named_;
  Time compared_since_ = Time::max();
  bool is_known_ = false;
};

}  // namespace trainer::stall
