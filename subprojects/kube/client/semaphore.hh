// A semaphore bounds how many may do something at once; the others wait their turn.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "kube/client/task.hh"

namespace kube {

// Namespaces take turns, one permit each; in a namespace, waiters of one priority are served in the
// order in which they came. Concurrency: one thread. Lifecycle: permits and waiters may outlive it,
// since the coroutine frames that hold them are destroyed with the io_context, which is destroyed
// last. Cost: O(1).
class Semaphore {
  struct State;

 public:
  // Waiters with kHigh go before all of their namespace with kLow, except for `low_share`.
  enum class Priority { kHigh, kLow };
  // Without a deadline, acquire() waits for as long as it takes.
  static constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

  // Its destructor gives it to the next waiter.
  class Permit {
   public:
    explicit Permit(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Permit(Permit&&) noexcept = default;
    Permit& operator=(Permit&&) = delete;
    ~Permit();

   private:
    std::shared_ptr<State> state_;  // nullptr once moved from
  };

  // If both priorities wait in a namespace, kLow gets one of `low_share` permits; without it kLow
  // gets none.
  explicit Semaphore(std::size_t count, std::size_t low_share = SIZE_MAX);
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // `ns` is borrowed until the result. Errors: kTimeout, kCancelled.
  Task<Result<Permit>> acquire(std::chrono::steady_clock::time_point deadline,
                               Priority priority = Priority::kHigh, std::string_view ns = {});
  std::size_t waiting() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace kube
