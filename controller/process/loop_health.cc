#include "controller/process/loop_health.hh"

#include <fmt/format.h>

#include <algorithm>

namespace trainer {
namespace {

constexpr std::chrono::seconds kMeasureInterval{1};
// This is longer than any step that ends by itself, and shorter than three failed probes.
constexpr std::chrono::seconds kDead{15};

}  // namespace

kube::Task<void> LoopHealth::run(kube::Clock& clock) {
  while (true) {
    const Steady due = clock.steady() + kMeasureInterval;
    co_await kube::sleep(clock, kMeasureInterval);
    const Steady now = clock.steady();
    ran_at_ = now.time_since_epoch().count();
    if (on_lag_) on_lag_(loop_, std::max(now - due, Steady::duration::zero()));
  }
}

std::string LoopHealth::problem(Steady now) const {
  const auto silent = now - Steady(Steady::duration(ran_at_.load()));
  if (silent < kDead) return {};
  return fmt::format("the {} thread has not run for {} s", loop_,
                     std::chrono::duration_cast<std::chrono::seconds>(silent).count());
}

}  // namespace trainer
