#include "kube/client/slots.hh"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace kube {

Task<Result<Slots::Permit>> Slots::acquire(std::chrono::steady_clock::time_point deadline,
                                           Priority priority) {
  if (free_ > 0) {
    --free_;
    co_return Permit(this);
  }
  asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
  const auto waiter = std::make_shared<Waiter>(std::move(timer));
  Queue& queue = priority == Priority::kHigh ? high_ : low_;
  queue.push_back(waiter);
  const auto [error] = co_await waiter->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (waiter->is_granted) {
    Permit permit(this);  // a caller that was cancelled meanwhile gives it back by dropping it
    co_return std::move(permit);
  }
  queue.erase(std::find(queue.begin(), queue.end(), waiter));
  co_return error
      ? fail(ErrorCode::kCancelled, "waiting for a turn was given up")
      : fail(ErrorCode::kTimeout, "too much else was under way, and there was no turn in time");
}

void Slots::release() {
  Queue& queue = high_.empty() ? low_ : high_;
  if (queue.empty()) {
    ++free_;
    return;
  }
  const auto next = queue.front();
  queue.pop_front();
  next->is_granted = true;
  next->timer.cancel();
}

}  // namespace kube
