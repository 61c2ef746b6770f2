// Whether a thread still runs the handlers of its event loop.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "kube/client/clock.hh"
#include "kube/client/task.hh"

namespace trainer {

// A heartbeat every second, on the loop itself. A thread that hangs, or a step that does not end,
// is noticed by problem(), and a busy loop by how late the heartbeats are.
class LoopHealth {
 public:
  using Steady = kube::Clock::Steady;
  // `loop`: its name in texts and metrics. `on_lag`: called on the loop with how late each
  // heartbeat was; may be empty.
  using OnLag = std::function<void(std::string_view loop, Steady::duration lag)>;
  LoopHealth(std::string loop, Steady now, OnLag on_lag)
      : loop_(std::move(loop)),
        on_lag_(std::move(on_lag)),
        ran_at_(now.time_since_epoch().count()) {}

  // Runs until it is cancelled. Concurrency: the loop's thread.
  kube::Task<void> run(kube::Clock& clock);
  // Why the thread counts as dead at `now`, for probes; else empty. Concurrency: any thread.
  std::string problem(Steady now) const;

 private:
  const std::string loop_;
  const OnLag on_lag_;
  std::atomic<Steady::rep> ran_at_;
};

}  // namespace trainer
