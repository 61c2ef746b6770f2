// Time and randomness are parameters, so that tests can control them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "kube/client/task.hh"
#include "kube/model/time.hh"

namespace kube {

// This is a future wake-up; the destructor cancels it.
class Timer {
 public:
  virtual ~Timer() = default;
};

class Clock {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  virtual Time now() const = 0;       // the wall clock, for times in objects
  virtual Steady steady() const = 0;  // the clock for durations
  // This is steady(), but it goes on while the machine sleeps: other machines may act meanwhile. It
  // is only comparable with itself.
  virtual Steady since_boot() const { return steady(); }
  // Calls `wake` on `executor` once steady() has reached `when`. By default it wakes by the
  // machine's time.
  virtual std::unique_ptr<Timer> wake_at(asio::any_io_executor executor, Steady when,
                                         std::function<void()> wake);
};

// These are the machine's clocks.
class SystemClock final : public Clock {
 public:
  Time now() const override {
    return Time(std::chrono::time_point_cast<std::chrono::microseconds>(Time::Clock::now()));
  }
  Steady steady() const override { return std::chrono::steady_clock::now(); }
  Steady since_boot() const override;
};

// Waits by `clock`. If it is cancelled, it throws operation_aborted like any other await.
Task<void> sleep(Clock& clock, std::chrono::steady_clock::duration duration);

// This is a source of random numbers for jitter and generated names; not for keys.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
  // Returns a number uniform in [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
};

// Seeded by the operating system. Concurrency: one thread per instance.
class SystemRandom final : public Random {
 public:
  SystemRandom();
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace kube
