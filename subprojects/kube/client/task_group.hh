// Owned concurrency: tasks that are cancelled together and awaited together.
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
  // The name given to spawn() and what the exception said.
  using OnError = std::function<void(std::string_view task, std::string_view what)>;

  TaskGroup(asio::any_io_executor executor, OnError on_error);

  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // False, and the task never runs, once the group was cancelled.
  bool spawn(std::string name, Task<void> task);
  // Asks every task to end: whatever it awaits completes with operation_aborted, and so does
  // everything it awaits afterwards.
  void cancel();
  // Waits for all tasks. When the waiter is itself cancelled it cancels the group, still waits, and
  // then throws operation_aborted.
  Task<void> join();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kube
