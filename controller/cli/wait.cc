// This is `trainer wait`.
#include <fmt/format.h>

#include <chrono>
#include <ostream>
#include <utility>

#include "controller/cli/change_job.hh"
#include "controller/cli/log_print.hh"
#include "controller/cli/wait_goal.hh"
#include "kube/client/notifier.hh"
#include "kube/client/object_sink.hh"
#include "kube/client/task_group.hh"
#include "kube/client/watcher.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;

std::string text_of(const ObjectState& state) {
  std::string text = state.phase.empty() ? "not started" : state.phase;
  if (!state.reason.empty()) text += " (" + state.reason + ")";
  return text;
}

// Watches one job until it has the wanted state. Concurrency: the io_context thread of the cluster.
class JobWaiter {
 public:
  JobWaiter(const JobInCluster& job, WaitGoal goal, const WaitOptions& options)
      : job_(job),
        goal_(std::move(goal)),
        options_(options),
        changed_(job.opened.cluster->io().get_executor()),
        sink_({[this](const Json& object) {
                 is_listed_ = true;
                 seen(object);
               },
               [this](const std::string& uid) {
                 is_gone_ = is_gone_ || uid == uid_;
                 changed_.notify();
               },
               // The job may be deleted before the watch begins.
               [this] {
                 is_gone_ = is_gone_ || !is_listed_;
                 changed_.notify();
               }}) {}

  Task<int> run() {
    // A name that does not exist is an error, and no endless wait.
    const auto object = co_await job_.get();
    if (!object) co_return job_.report(object.error());
    uid_ = kube::ObjectMeta::of(*object).uid;
    seen(*object);
    const bool is_one_look = options_.limit && options_.limit->count() == 0;
    if (verdict_ == WaitVerdict::kWaiting && !is_one_look) co_await watch();
    co_return answer();
  }

 private:
  void seen(const Json& object) {
    if (kube::ObjectMeta::of(object).uid != uid_) {
      is_gone_ = true;  // another object has the name
    } else if (auto state = job_.kind().why->read_state(object, job_.console.program)) {
      verdict_ = check_wait(goal_, object, *state, job_.kind().jobs->running);
      state_ = std::move(*state);
    }
    changed_.notify();
  }

  Task<void> watch() {
    kube::WatchOptions watched;
    watched.ns = job_.opened.key.ns;
    watched.field_selector = "metadata.name=" + job_.opened.key.name;
    watched.on_note = [this](std::string_view what, std::string_view detail) {
      if (what == "error" || what == "malformed") report(detail);
    };
    std::function<void(std::string_view, std::string_view)> on_error =
        [this](std::string_view task, std::string_view what) {
          report(fmt::format("{}: {}", task, what));
        };
    kube::TaskGroup tasks(job_.opened.cluster->io().get_executor(), on_error);
    tasks.spawn("watch of the job",
                kube::run_watch(job_.client(), job_.resource(), sink_, std::move(watched)));
    auto& clock = job_.client().clock();
    const auto end = clock.steady() + options_.limit.value_or(std::chrono::milliseconds(0));
    while (verdict_ == WaitVerdict::kWaiting && !is_gone_) {
      if (!options_.limit) {
        co_await changed_.wait();
      } else if (clock.steady() < end) {
        co_await changed_.wait_until(clock, end);
      } else {
        break;
      }
    }
    tasks.cancel();
    co_await tasks.join();
  }

  // The reason why no change comes is printed once.
  void report(std::string_view sentence) {
    if (std::exchange(reported_, std::string(sentence)) == sentence) return;
    job_.console.err << "-- " << plain_text(sentence) << std::endl;
  }

  int answer() const {
    const std::string title = job_.resource().kind + " " + job_.opened.key.to_string();
    if (verdict_ == WaitVerdict::kReached) {
      job_.console.out << fmt::format("{}: {}\n", title, text_of(state_));
      return kExitDone;
    }
    if (is_gone_) return job_.refuse(title + ": it was deleted");
    if (verdict_ == WaitVerdict::kNever)
      return job_.refuse(fmt::format("{}: it has ended: {}: this is not the state to wait for, {}",
                                     title, text_of(state_), options_.for_what));
    return job_.refuse(fmt::format(
        "{}: the time is over, and it is {}: `{} why {}/{} -n {}` says what it waits for", title,
        text_of(state_), job_.console.program, kube::to_lower(job_.resource().kind),
        job_.opened.key.name, job_.opened.key.ns));
  }

  const JobInCluster& job_;
  const WaitGoal goal_;
  const WaitOptions& options_;
  kube::Notifier changed_;
  kube::ObjectSink sink_;
  std::string uid_;
  ObjectState state_;
  WaitVerdict verdict_ = WaitVerdict::kWaiting;
  bool is_gone_ = false;
  bool is_listed_ = false;
  std::string reported_;
};

}  // namespace

int run_wait(const WaitOptions& options, const Registry& registry, Console& console) {
  auto goal = read_wait_goal(options.for_what);
  if (!goal) {
    console.err << fmt::format(
        "{}: wait: --for={}: choose from complete, failed, finished, running, suspended, phase=X\n",
        console.program, options.for_what);
    return kExitUsage;
  }
  const auto job = open_job(registry, "wait", options.job, console);
  if (!job) return job.error();
  JobWaiter waiter(*job, std::move(*goal), options);
  return job->opened.cluster->run(waiter.run());
}

}  // namespace trainer
