// This bounds how long any task may take.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kube/client/task.hh"

namespace kube {

namespace detail {

template <class T>
concept IsResult = requires { typename T::error_type; };

// A task's own errors and its end by the deadline both become one error.
template <class T>
using Deadlined = std::conditional_t<IsResult<T>, T, Result<T>>;

struct DeadlineState {
  asio::cancellation_signal stop;
  bool is_over = false;
  bool was_stopped = false;

  void emit(asio::cancellation_type type) {
    was_stopped = true;
    stop.emit(type);
  }
};

}  // namespace detail

// Returns the task's outcome, or kTimeout once `limit` is over: the task is then cancelled, and has
// ended before this returns. A Result<T> stays one, anything else becomes one. T is default
// constructible.
template <class T>
Task<detail::Deadlined<T>> with_deadline(Milliseconds limit, Task<T> task) {
  const auto executor = co_await asio::this_coro::executor;
  const auto state = std::make_shared<detail::DeadlineState>();
  asio::steady_timer timer(executor, limit);
  timer.async_wait([state](const boost::system::error_code& error) {
    if (error) return;
    state->is_over = true;
    state->emit(asio::cancellation_type::all);
  });
  // The task listens to the signal of this function, so the caller's cancellation has to be passed
  // on.
  auto callers = (co_await asio::this_coro::cancellation_state).slot();
  if (callers.is_connected()) {
    callers.assign([state](asio::cancellation_type type) { state->emit(type); });
  }
  auto outcome = co_await asio::co_spawn(
      executor, std::move(task),
      asio::bind_cancellation_slot(state->stop.slot(), asio::as_tuple(asio::use_awaitable)));
  timer.cancel();
  // An emission may still be in the executor's queue, with a bare pointer into the signal.
  if (state->was_stopped) asio::post(executor, [state] {});

  auto timeout = [limit] {
    return fail(ErrorCode::kTimeout, "no result within " + std::to_string(limit.count()) + " ms");
  };
  if (const std::exception_ptr error = std::get<0>(outcome)) {
    if (state->is_over) co_return timeout();
    std::rethrow_exception(error);
  }
  if constexpr (std::is_void_v<T>) {
    co_return Result<void>();
  } else {
    if constexpr (detail::IsResult<T>) {
      const auto& result = std::get<1>(outcome);
      if (state->is_over && !result && result.error().code == ErrorCode::kCancelled) {
        co_return timeout();
      }
    }
    co_return std::move(std::get<1>(outcome));
  }
}

}  // namespace kube
