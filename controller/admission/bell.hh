// Lets coroutines wait until something has happened, or some time has passed.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "kube/client/clock.hh"
#include "kube/client/task.hh"

namespace trainer {

// Wakes everybody who waits when it rings; who comes later waits for the next time. So look first,
// then wait, and look again. Concurrency: the thread of its io_context. Outlives its waiters.
class Bell {
 public:
  Bell(kube::asio::io_context& io, kube::Clock& clock) : clock_(clock), waiters_(io) {
    waiters_.expires_at(kube::asio::steady_timer::time_point::max());
  }

  void ring() { waiters_.cancel(); }

  kube::Task<void> wait() {
    co_await waiters_.async_wait(kube::asio::as_tuple(kube::asio::use_awaitable));
  }
  // Also wakes the others when the time is over.
  kube::Task<void> wait_until(kube::Clock::Steady when) {
    const auto alarm = clock_.wake_at(waiters_.get_executor(), when, [this] { ring(); });
    co_await wait();
  }
  kube::Task<void> wait_for(std::chrono::steady_clock::duration time) {
    return wait_until(clock_.steady() + time);
  }

 private:
  kube::Clock& clock_;
  kube::asio::steady_timer waiters_;
};

}  // namespace trainer
