#include "kube/client/semaphore.hh"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <list>
#include <string>
#include <unordered_map>

namespace kube {

struct Semaphore::State {
  State(std::size_t count, std::size_t low_share_) : free(count), low_share(low_share_) {}

  struct Waiter {
    explicit Waiter(asio::steady_timer timer_) : timer(std::move(timer_)) {}
    asio::steady_timer timer;
    bool is_granted = false;
  };
  using Queue = std::list<std::shared_ptr<Waiter>>;

  // These wait in a namespace.
  struct NamespaceWaiters {
    Queue high;
    Queue low;
    std::size_t passed = 0;  // permits for `high` since the last for `low`, while both waited

    Queue& next(std::size_t share) {
      const bool is_low = high.empty() || (!low.empty() && passed + 1 >= share);
      passed = is_low || low.empty() ? 0 : passed + 1;
      return is_low ? low : high;
    }
  };
  using ByNamespace = std::unordered_map<std::string, NamespaceWaiters>;

  std::size_t free;
  const std::size_t low_share;
  std::size_t waiting = 0;
  ByNamespace by_namespace;
  std::deque<ByNamespace::value_type*> turn;  // includes those whose last waiter has left

  Queue& queue_of(std::string_view ns, Priority priority) {
    const auto [at, is_new] = by_namespace.try_emplace(std::string(ns));
    if (is_new) turn.push_back(&*at);
    return priority == Priority::kHigh ? at->second.high : at->second.low;
  }

  void release() {
    while (!turn.empty()) {
      auto* const waiters = turn.front();
      turn.pop_front();
      Queue& queue = waiters->second.next(low_share);
      const auto next = queue.empty() ? nullptr : queue.front();
      if (next) queue.pop_front();
      if (waiters->second.high.empty() && waiters->second.low.empty()) {
        by_namespace.erase(waiters->first);
      } else {
        turn.push_back(waiters);
      }
      if (!next) continue;
      --waiting;
      next->is_granted = true;
      next->timer.cancel();
      return;
    }
    ++free;
  }
};

Semaphore::Permit::~Permit() {
  if (state_) state_->release();
}

Semaphore::Semaphore(std::size_t count, std::size_t low_share)
    : state_(std::make_shared<State>(count, low_share)) {}

std::size_t Semaphore::waiting() const {
  return state_->waiting;
}

Task<Result<Semaphore::Permit>> Semaphore::acquire(std::chrono::steady_clock::time_point deadline,
                                                   Priority priority, std::string_view ns) {
  const std::shared_ptr<State> state = state_;
  if (state->free > 0) {
    --state->free;
    co_return Permit(state);
  }
  asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
  const auto waiter = std::make_shared<State::Waiter>(std::move(timer));
  State::Queue& queue = state->queue_of(ns, priority);
  const auto at = queue.insert(queue.end(), waiter);
  ++state->waiting;
  const auto [error] = co_await waiter->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (waiter->is_granted) {
    Permit permit(state);  // a caller that was cancelled meanwhile drops it, which gives it back
    co_return std::move(permit);
  }
  queue.erase(at);
  --state->waiting;
  co_return error
      ? fail(ErrorCode::kCancelled, "waiting for a turn was given up")
      : fail(ErrorCode::kTimeout, "too much else was under way, and there was no turn in time");
}

}  // namespace kube
