#include "kube/client/slots.hh"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace kube {

Task<Result<Slots::Permit>> Slots::acquire(std::chrono::steady_clock::time_point deadline) {
  if (free_ > 0) {
    --free_;
    co_return Permit(this);
  }
  asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
  const auto waiter = std::make_shared<Waiter>(std::move(timer));
  waiting_.push_back(waiter);
  const auto [error] = co_await waiter->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (waiter->is_granted) {
    Permit permit(this);  // a caller that was cancelled meanwhile gives it back by dropping it
    co_return std::move(permit);
  }
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), waiter));
  co_return error ? fail(ErrorCode::kCancelled, "waiting for a connection was given up")
                  : fail(ErrorCode::kTimeout, "no connection became free in time");
}

void Slots::release() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  const auto next = waiting_.front();
  waiting_.pop_front();
  next->is_granted = true;
  next->timer.cancel();
}

}  // namespace kube
