#include "runtimes/stall/limits.hh"

#include <algorithm>

namespace trainer::stall {

Limits limits_of(std::int32_t threshold) {
  constexpr std::chrono::seconds kMinPeriod{2};
  Limits limits;
  limits.threshold = std::chrono::seconds(std::clamp(threshold, kMinThreshold, kMaxThreshold));
  limits.period = std::min(limits.period, std::max(limits.threshold / 6, kMinPeriod));
  limits.start = std::max(limits.start, 2 * limits.threshold);
  limits.busy = std::max(limits.busy, limits.threshold);
  return limits;
}

Limits limits_for(Limits limits, std::int32_t ranks) {
  const std::chrono::seconds needed((ranks + kMaxRate - 1) / kMaxRate);
  if (needed <= limits.period) return limits;
  limits.period = std::max(limits.period, std::min(needed, kMaxPeriod));
  // A rank may have moved until a period after the hang began, and counts as busy for the time of
  // silence.
  limits.threshold = std::max(limits.threshold, limits.silence() + limits.period);
  limits.start = std::max(limits.start, 2 * limits.threshold);
  limits.busy = std::max(limits.busy, limits.threshold);
  return limits;
}

}  // namespace trainer::stall
