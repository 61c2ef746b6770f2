#include "kube/client/task_group.hh"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <list>
#include <vector>

#include "kube/client/notifier.hh"

namespace kube {

namespace {

struct Child {
  std::string name;
  asio::cancellation_signal signal;
};

bool is_cancellation(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

struct TaskGroup::State {
  State(asio::any_io_executor executor_, OnError on_error_)
      : executor(std::move(executor_)), on_error(std::move(on_error_)), ended(executor) {}
  asio::any_io_executor executor;
  OnError on_error;
  Notifier ended;  // notified when the last child is gone
  std::list<std::shared_ptr<Child>> children;
  bool is_cancelled = false;

  void cancel() {
    is_cancelled = true;
    // The list is copied: a task that ends at once removes itself from the list.
    const std::vector<std::shared_ptr<Child>> all(children.begin(), children.end());
    for (const auto& child : all) child->signal.emit(asio::cancellation_type::all);
  }
};

TaskGroup::TaskGroup(asio::any_io_executor executor, OnError on_error)
    : state_(std::make_shared<State>(std::move(executor), std::move(on_error))) {}

bool TaskGroup::spawn(std::string name, Task<void> task) {
  if (state_->is_cancelled) return false;
  auto child = std::make_shared<Child>();
  child->name = std::move(name);
  const auto at = state_->children.insert(state_->children.end(), child);
  auto on_end = [state = state_, at](std::exception_ptr error) {
    const auto ended = *at;
    state->children.erase(at);
    // A cancellation may still be in the executor's queue, with a bare pointer into the signal.
    if (state->is_cancelled) asio::post(state->executor, [ended] {});
    const bool was_asked = error && state->is_cancelled && is_cancellation(error);
    if (error && !was_asked && state->on_error) {
      state->on_error(ended->name, what_of(error));
    }
    if (state->children.empty()) state->ended.notify();
  };
  asio::co_spawn(state_->executor, std::move(task),
                 asio::bind_cancellation_slot(child->signal.slot(), std::move(on_end)));
  return true;
}

void TaskGroup::cancel() {
  state_->cancel();
}

Task<void> TaskGroup::join() {
  const auto state = state_;
  bool was_cancelled = false;
  while (!state->children.empty()) {
    co_await state->ended.wait();
    const auto asked = co_await asio::this_coro::cancellation_state;
    if (asked.cancelled() != asio::cancellation_type::none) {
      was_cancelled = true;
      state->cancel();
      // The children's frames borrow from this one, so the wait itself cannot be cancelled.
      co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    }
  }
  if (was_cancelled) throw boost::system::system_error(asio::error::operation_aborted);
}

}  // namespace kube
