#include "controller/cli/follow_jobs.hh"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "controller/cli/log_follow.hh"
#include "controller/cli/log_print.hh"

namespace trainer {

using kube::Result;
using kube::Task;

Task<Result<Followed>> follow_jobs(kube::asio::io_context& io, kube::ApiClient& client,
                                   Console& console, FollowOptions options) {
  LogsOptions logs;
  logs.is_followed = true;
  Followed all;
  for (const kube::ObjectKey& job : options.jobs) {
    LogFollower::Options follow;
    follow.resource = options.resource;
    follow.hook = options.hook;
    follow.job = job;
    follow.ends_when_suspended = true;
    follow.omits_failure = true;  // `why` follows
    follow.is_stopped = options.is_left;
    follow.print = log_printer(logs, console);
    follow.report = options.report;
    const std::string title = follow.title();
    LogFollower follower(io, client, std::move(follow));
    const auto last = co_await follower.run();
    if (options.is_left()) {
      all.is_complete = false;
      break;
    }
    if (!last) co_return tl::unexpected(last.error().at(title));
    if (!*last) options.report(title + ": deleted");
    all.is_complete &= *last && (*last)->is_finished && !(*last)->is_failed;
    if (*last && (*last)->is_failed) all.failed.push_back(job);
  }
  co_return all;
}

Task<Result<Followed>> follow_until_edit(kube::asio::io_context& io, kube::ApiClient& client,
                                         Console& console, FollowOptions options, EditWait wait) {
  constexpr kube::Milliseconds kPoll{200};
  auto followed = co_await follow_jobs(io, client, console, std::move(options));
  if (!followed) co_return followed;
  const bool has_ended = followed->is_complete || !followed->failed.empty();
  const auto is_awaited = [&] { return has_ended && !wait.is_edited() && !wait.is_over(); };
  if (is_awaited()) wait.say_waits(*followed);
  while (is_awaited()) co_await kube::sleep(client.clock(), kPoll);
  co_return followed;
}

void SignalSteps::begin() {
  signals_.add(SIGINT);
  signals_.add(SIGTERM);
}

Task<void> SignalSteps::run(std::vector<Step> steps) {
  for (const Step& step : steps) {
    const auto [error, signal] =
        co_await signals_.async_wait(kube::asio::as_tuple(kube::asio::use_awaitable));
    if (error) co_return;
    say_(step.sentence);
    if (&step == &steps.back()) signals_.clear();
    co_await step.act();
  }
}

}  // namespace trainer
