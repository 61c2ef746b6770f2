// A bound on how many may do something at once; the others wait their turn.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <utility>

#include "kube/client/task.hh"

namespace kube {

// First come, first served among equals. Concurrency: one thread. Outlives its permits.
class Slots {
 public:
  // Whoever waits with kHigh goes before everybody who waits with kLow.
  enum class Priority { kHigh, kLow };
  // Without one, acquire() waits for as long as it takes.
  static constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

  // Gives its slot back, to whoever is next.
  class Permit {
   public:
    explicit Permit(Slots* slots) : slots_(slots) {}
    Permit(Permit&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (slots_ != nullptr) slots_->release();
    }

   private:
    Slots* slots_;
  };

  explicit Slots(std::size_t count) : free_(count) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  // Errors: kTimeout, kCancelled.
  Task<Result<Permit>> acquire(std::chrono::steady_clock::time_point deadline,
                               Priority priority = Priority::kHigh);
  std::size_t waiting() const { return high_.size() + low_.size(); }

 private:
  struct Waiter {
    explicit Waiter(asio::steady_timer timer_) : timer(std::move(timer_)) {}
    asio::steady_timer timer;
    bool is_granted = false;
  };
  using Queue = std::deque<std::shared_ptr<Waiter>>;
  void release();
  std::size_t free_;
  Queue high_;
  Queue low_;
};

}  // namespace kube
