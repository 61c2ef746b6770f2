// These times decide when a job stalls. Pure.
#pragma once

#include <chrono>
#include <cstdint>

namespace trainer::stall {

// Bounds of the threshold that a job sets, in seconds.
inline constexpr std::int32_t kMinThreshold = 10;
inline constexpr std::int32_t kMaxThreshold = 86'400;

struct Limits {
  std::chrono::seconds threshold{300};  // without a step, or 3 times the longest gap
  std::chrono::seconds period{15};      // between two heartbeats
  std::chrono::seconds start{1200};     // until the first step; at least twice the threshold
  std::chrono::seconds busy{3600};      // a phase without steps in which CPU, I/O or the line move

  // A request for stacks reaches a rank with the answer to its next heartbeat.
  std::chrono::seconds answer_time() const { return 2 * period + std::chrono::seconds(5); }
  // A rank that is not heard for so long is silent.
  std::chrono::seconds silence() const { return 3 * period + std::chrono::seconds(10); }
};

// Returns the limits of a job with a threshold of its own. A threshold out of bounds becomes the
// nearest one within them, and a short one makes heartbeats more frequent.
Limits limits_of(std::int32_t threshold);

}  // namespace trainer::stall
