// `trainer run` and `trainer local run` follow jobs in this way, and end them by signals.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/console.hh"
#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"
#include "kube/client/task_group.hh"

namespace trainer {

struct FollowOptions {
  kube::Resource resource;  // the resource of all jobs
  LogsHook hook;
  std::vector<kube::ObjectKey> jobs;
  std::function<bool()> is_left;                 // the jobs are no longer followed then
  std::function<void(std::string_view)> report;  // it gets changes of a job, and errors
};

struct Followed {
  std::vector<kube::ObjectKey> failed;
  bool is_complete = true;  // all of them are
};

// Prints the logs of jobs, one after the other, to their ends. Concurrency: the thread of `io`.
// `client` and `console` outlive the task.
kube::Task<kube::Result<Followed>> follow_jobs(kube::asio::io_context& io, kube::ApiClient& client,
                                               Console& console, FollowOptions options);

// The jobs begin again after an edit of their code.
struct EditWait {
  std::function<bool()> is_edited;
  std::function<bool()> is_over;                   // no edit is waited for any more
  std::function<void(const Followed&)> say_waits;  // the jobs have ended
};

// Follows the jobs, and waits for an edit once they have ended. It also ends when they are no
// longer followed.
kube::Task<kube::Result<Followed>> follow_until_edit(kube::asio::io_context& io,
                                                     kube::ApiClient& client, Console& console,
                                                     FollowOptions options, EditWait wait);

// SIGINT and SIGTERM carry out one step each. After the last step a signal ends this process, as if
// it had no handler. Concurrency: the thread of `io`.
class SignalSteps {
 public:
  struct Step {
    std::string sentence;  // it is said first
    std::function<kube::Task<void>()> act;
  };
  SignalSteps(kube::asio::io_context& io, std::function<void(std::string_view)> say)
      : signals_(io), say_(std::move(say)) {}

  // From now on signals count.
  void begin();
  // Ends if it is cancelled, or after the last step. This outlives it.
  kube::Task<void> run(std::vector<Step> steps);

 private:
  kube::asio::signal_set signals_;
  std::function<void(std::string_view)> say_;
};

}  // namespace trainer
