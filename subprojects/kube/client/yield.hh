// Work that comes in large pieces yields: other work on the same thread gets a turn between two of
// them.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>

#include "kube/client/task.hh"

namespace kube {

// Texts from this size on take milliseconds to read, to write or to hash.
inline constexpr std::size_t kLargeText = 256U << 10;

// Goes on once all work that waits for this thread has had its turn.
inline Task<void> yield() {
  const auto executor = co_await asio::this_coro::executor;
  co_await asio::post(executor, asio::use_awaitable);
}

}  // namespace kube
