#include "kube/client/semaphore.hh"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>

namespace kube {

struct Semaphore::State {
  explicit State(std::size_t count) : free(count) {}

  struct Waiter {
    explicit Waiter(asio::steady_timer timer_) : timer(std::move(timer_)) {}
    asio::steady_timer timer;
    bool is_granted = false;
  };
  using Queue = std::deque<std::shared_ptr<Waiter>>;

  std::size_t free;
  Queue high;
  Queue low;

  void release() {
    Queue& queue = high.empty() ? low : high;
    if (queue.empty()) {
      ++free;
      return;
    }
    const auto next = queue.front();
    queue.pop_front();
    next->is_granted = true;
    next->timer.cancel();
  }
};

Semaphore::Permit::~Permit() {
  if (state_) state_->release();
}

Semaphore::Semaphore(std::size_t count) : state_(std::make_shared<State>(count)) {}

std::size_t Semaphore::waiting() const {
  return state_->high.size() + state_->low.size();
}

Task<Result<Semaphore::Permit>> Semaphore::acquire(std::chrono::steady_clock::time_point deadline,
                                                   Priority priority) {
  const std::shared_ptr<State> state = state_;
  if (state->free > 0) {
    --state->free;
    co_return Permit(state);
  }
  asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
  const auto waiter = std::make_shared<State::Waiter>(std::move(timer));
  State::Queue& queue = priority == Priority::kHigh ? state->high : state->low;
  queue.push_back(waiter);
  const auto [error] = co_await waiter->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (waiter->is_granted) {
    Permit permit(state);  // a caller that was cancelled meanwhile gives it back by dropping it
    co_return std::move(permit);
  }
  queue.erase(std::find(queue.begin(), queue.end(), waiter));
  co_return error
      ? fail(ErrorCode::kCancelled, "waiting for a turn was given up")
      : fail(ErrorCode::kTimeout, "too much else was under way, and there was no turn in time");
}

}  // namespace kube
