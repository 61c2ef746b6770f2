// This checks whether a thread still runs the handlers of its event loop.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "kube/client/clock.hh"
#include "kube/client/task.hh"

namespace trainer {

// There is a heartbeat every second, on the loop itself. problem() notices a thread that hangs, or
// a step that does not end. The delay of the heartbeats shows a busy loop.
class LoopHealth {
 public:
  using Steady = kube::Clock::Steady;
  // `loop` is its name in texts and metrics. `on_lag` is called on the loop with the delay of each
  // heartbeat; may be empty.
  using OnLag = std::function<void(std::string_view loop, Steady::duration lag)>;
  LoopHealth(std::string loop, Steady now, OnLag on_lag)
      : loop_(std::move(loop)),
        on_lag_(std::move(on_lag)),
        ran_at_(now.time_since_epoch().count()) {}

  // Runs until it is cancelled. Concurrency: the loop's thread.
  kube::Task<void> run(kube::Clock& clock);
  // Returns why the thread counts as dead at `now`, for probes; else empty. Concurrency: any
  // thread.
  std::string problem(Steady now) const;

 private:
  const std::string loop_;
  const OnLag on_lag_;
  std::atomic<Steady::rep> ran_at_;
};

}  // namespace trainer
