// The tasks of a group are cancelled together and awaited together.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kube/client/task.hh"

namespace kube {

// Guarantees: a task that was spawned has ended, and its frame is gone, when join() returns; an
// exception that leaves a task is passed to `on_error` (the end by cancellation is no error once
// the group was cancelled); after cancel() further tasks are refused. Concurrency: the thread of
// its executor. Lifecycle: join() before destruction, unless the io_context has stopped for good.
class TaskGroup {
 public:
  // It gets the name that spawn() got and the message of the exception.
  using OnError = std::function<void(std::string_view task, std::string_view what)>;

  TaskGroup(asio::any_io_executor executor, OnError on_error);

  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Returns false if the group was cancelled; the task then never runs.
  bool spawn(std::string name, Task<void> task);
  // Asks every task to end: its pending await completes with operation_aborted, and so do all later
  // ones.
  void cancel();
  // Waits for all tasks. If the waiter is itself cancelled, it cancels the group, still waits, and
  // then throws operation_aborted.
  Task<void> join();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kube
