// These times decide when a job stalls. Pure.
#pragma once

#include <chrono>
#include <cstdint>

namespace trainer::stall {

// Bounds of the threshold that a job sets, in seconds.
inline constexpr std::int32_t kMinThreshold = 10;
inline constexpr std::int32_t kMaxThreshold = 86'400;

// The controller serves some 1,000 connections in a second; one job must not take them all.
inline constexpr std::int32_t kMaxRate = 200;
inline constexpr std::chrono::seconds kMaxPeriod{60};

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

// Returns the limits of the same job with so many ranks: they send kMaxRate heartbeats a second at
// most, unless that needs a period of more than kMaxPeriod. Where this makes the period longer, the
// threshold is at least four of them and ten seconds: for so long a rank may count as busy.
Limits limits_for(Limits limits, std::int32_t ranks);

}  // namespace trainer::stall
