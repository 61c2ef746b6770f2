// Lets coroutines wait until something has happened, or some time has passed.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "kube/client/clock.hh"
#include "kube/client/task.hh"

namespace kube {

// notify() wakes all waiters; a later one waits for the next time. So check the condition first,
// then wait, and check it again: a cancelled wait returns like any other. Concurrency: the thread
// of its executor. Outlives its waiters.
class Notifier {
 public:
  explicit Notifier(asio::any_io_executor executor)
      : waiters_(std::move(executor), asio::steady_timer::time_point::max()) {}

  void notify() { waiters_.cancel(); }

  Task<void> wait() { co_await waiters_.async_wait(asio::as_tuple(asio::use_awaitable)); }
  // Also wakes the other waiters when the time is over.
  Task<void> wait_until(Clock& clock, Clock::Steady when) {
    const auto timer = clock.wake_at(waiters_.get_executor(), when, [this] { notify(); });
    co_await wait();
  }
  Task<void> wait_for(Clock& clock, std::chrono::steady_clock::duration time) {
    return wait_until(clock, clock.steady() + time);
  }

 private:
  asio::steady_timer waiters_;  // never expires; cancelled to wake them
};

}  // namespace kube
