// A clock that a test moves.
#pragma once

#include <boost/asio/post.hpp>
#include <map>
#include <memory>
#include <utility>

#include "kube/client/clock.hh"

namespace kube {

// Starts at 2026-01-01T00:00:00Z. Timers are posted to their executor when advance() passes their
// time, in the order of their times; the io_context has to run for them to fire. Outlives its
// timers.
class FakeClock final : public Clock {
 public:
  Time now() const override { return now_; }
  Steady steady() const override { return steady_; }
  Steady since_boot() const override { return steady_ + suspended_; }

  std::unique_ptr<Timer> wake_at(asio::any_io_executor executor, Steady when,
                                 std::function<void()> wake) override {
    auto pending = std::make_shared<Pending>();
    pending->executor = std::move(executor);
    pending->wake = std::move(wake);
    timers_.emplace(when, pending);
    notify();
    return std::make_unique<Handle>(std::move(pending));
  }

  void advance(std::chrono::microseconds by) {
    now_ = now_ + by;
    steady_ += by;
    notify();
  }

  // The machine sleeps: timers wait as long as it does.
  void suspend(std::chrono::microseconds by) {
    now_ = now_ + by;
    suspended_ += by;
  }

  // Returns how long until the earliest timer; max() if nothing is pending.
  std::chrono::steady_clock::duration until_next() {
    drop_cancelled();
    return timers_.empty() ? std::chrono::steady_clock::duration::max()
                           : timers_.begin()->first - steady_;
  }
  std::size_t timers() {
    drop_cancelled();
    return timers_.size();
  }

 private:
  struct Pending {
    asio::any_io_executor executor;
    std::function<void()> wake;
    bool is_cancelled = false;
  };
  class Handle final : public Timer {
   public:
    explicit Handle(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}
    ~Handle() override { pending_->is_cancelled = true; }

   private:
    std::shared_ptr<Pending> pending_;
  };

  void drop_cancelled() {
    for (auto at = timers_.begin(); at != timers_.end();) {
      at = at->second->is_cancelled ? timers_.erase(at) : std::next(at);
    }
  }

  void notify() {
    while (!timers_.empty() && timers_.begin()->first <= steady_) {
      const auto pending = timers_.begin()->second;
      timers_.erase(timers_.begin());
      asio::post(pending->executor, [pending] {
        if (!pending->is_cancelled) pending->wake();
      });
    }
  }

  Time now_ = Time::from_seconds(1'767'225'600);
  Steady steady_{std::chrono::hours(1)};
  Steady::duration suspended_{0};
  std::multimap<Steady, std::shared_ptr<Pending>> timers_;
};

// Numbers that are the same in every run.
class FakeRandom final : public Random {
 public:
  explicit FakeRandom(std::uint64_t value = std::uint64_t{1} << 63) : value_(value) {}
  std::uint64_t next() override { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace kube
