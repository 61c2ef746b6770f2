// A bound on writes in flight, with children before statuses.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>

#include "kube/client/task.hh"

namespace trainer {

// Guarantees: at most `limit` holders at a time; whoever waits with kChildren goes before everybody
// who waits with kStatus, each class in order of arrival: statuses queue behind the creation of
// children. Concurrency: one io_context thread. A cancelled wait leaves the queue.
class Slots {
 public:
  enum class Class { kChildren, kStatus };
  Slots(kube::asio::io_context& io, std::size_t limit) : io_(io), free_(limit) {}

  // Gives its slot back when it goes out of scope.
  class Holder {
   public:
    explicit Holder(Slots* slots) : slots_(slots) {}
    Holder(Holder&& other) noexcept : slots_(other.slots_) { other.slots_ = nullptr; }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    Holder& operator=(Holder&&) = delete;
    ~Holder() {
      if (slots_) slots_->release();
    }

   private:
    Slots* slots_;
  };
  kube::Task<Holder> acquire(Class priority);
  // Somebody waits.
  bool is_crowded() const { return !children_.empty() || !statuses_.empty(); }

 private:
  struct Waiter {
    explicit Waiter(kube::asio::io_context& io) : timer(io) {}
    kube::asio::steady_timer timer;
    bool is_granted = false;
  };
  void release();

  kube::asio::io_context& io_;
  std::size_t free_;
  std::deque<std::shared_ptr<Waiter>> children_;
  std::deque<std::shared_ptr<Waiter>> statuses_;
};

}  // namespace trainer
