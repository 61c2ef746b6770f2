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

}  // namespace trainer::stall
