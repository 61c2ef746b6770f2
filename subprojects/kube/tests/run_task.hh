// Runs coroutines from tests.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "kube/client/task.hh"

namespace kube {

// Runs `io` until the task has ended and returns its result; an exception of the task leaves this
// call. `limit` ends a test that would hang.
template <class T>
T run_task(asio::io_context& io, Task<T> task,
           std::chrono::seconds limit = std::chrono::seconds(20)) {
  std::optional<T> result;
  std::exception_ptr failure;
  bool is_done = false;
  asio::co_spawn(io, std::move(task), [&](std::exception_ptr error, T value) {
    is_done = true;
    failure = error;
    if (!error) result.emplace(std::move(value));
  });
  const auto deadline = std::chrono::steady_clock::now() + limit;
  io.restart();
  while (!is_done && std::chrono::steady_clock::now() < deadline) {
    if (io.run_one_for(std::chrono::seconds(1)) == 0) io.restart();
  }
  if (!is_done) throw std::runtime_error("the task did not end in time");
  if (failure) std::rethrow_exception(failure);
  return std::move(*result);
}

inline Task<bool> then_true(Task<void> task) {
  co_await std::move(task);
  co_return true;
}

inline void run_task(asio::io_context& io, Task<void> task,
                     std::chrono::seconds limit = std::chrono::seconds(20)) {
  run_task(io, then_true(std::move(task)), limit);
}

// Runs everything that is ready now, and nothing that has to wait.
inline void settle(asio::io_context& io) {
  io.restart();
  while (io.poll() > 0) io.restart();
}

// Runs `io` until `condition` holds.
template <class Condition>
bool run_until(asio::io_context& io, Condition condition,
               std::chrono::seconds limit = std::chrono::seconds(20)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  io.restart();
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    if (io.run_one_for(std::chrono::milliseconds(100)) == 0) io.restart();
  }
  return condition();
}

}  // namespace kube
