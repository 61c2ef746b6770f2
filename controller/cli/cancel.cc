// This is `trainer cancel`.
#include <fmt/format.h>
#include <unistd.h>

#include <istream>
#include <ostream>
#include <utility>

#include "controller/cli/change_job.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

using kube::Task;

// Waits for a line, without a limit: a person answers. No request is under way meanwhile.
bool is_agreed(const ChangeFacts& facts, Console& console) {
  const std::string nodes =
      facts.state.nodes.empty() ? "" : fmt::format(", nodes {}", facts.state.nodes);
  console.err << fmt::format(
                     "{} ({}{}): its pods end, and it is deleted with its status and logs.\n"
                     "Cancel it? [y/N] ",
                     facts.title, facts.state.phase.empty() ? "not started" : facts.state.phase,
                     nodes)
              << std::flush;
  std::string answer;
  std::getline(console.in, answer);
  answer = kube::to_lower(kube::trimmed(answer));
  return answer == "y" || answer == "yes";
}

// Reads the object, refuses what cannot be cancelled, and deletes it if `is_confirmed`.
Task<int> cancel(const JobInCluster& job, bool is_confirmed, ChangeFacts& facts) {
  const auto object = co_await job.get();
  if (!object) co_return job.report(object.error());
  const std::string asked_about = facts.meta.uid;
  facts = job.facts(*object);
  if (const auto why = change_refusal(facts, job.verb, job.console.program))
    co_return job.refuse(*why);
  if (!is_confirmed) co_return kExitDone;
  if (!asked_about.empty() && asked_about != facts.meta.uid)
    co_return job.refuse(facts.title + ": another job has this name now: ask again");
  kube::DeleteOptions options;
  options.propagation = "Background";
  options.uid = facts.meta.uid;
  const auto done = co_await job.client().remove(job.resource(), facts.meta.key(), options);
  if (!done) co_return job.report(done.error());
  job.console.out << facts.title << ": cancelled\n";
  co_return kExitDone;
}

}  // namespace

int run_cancel(const CancelOptions& options, const Registry& registry, Console& console) {
  if (!options.is_confirmed && isatty(STDIN_FILENO) != 1) {
    console.err << console.program
                << ": cancel: standard input is no terminal, so that no question can be asked: add "
                   "--yes\n";
    return kExitUsage;
  }
  const auto job = open_job(registry, "cancel", options.job, console);
  if (!job) return job.error();
  Cluster& cluster = *job->opened.cluster;
  ChangeFacts facts;
  if (!options.is_confirmed) {
    const int code = cluster.run(cancel(*job, false, facts));
    if (code != kExitDone) return code;
    if (!is_agreed(facts, console)) {
      console.err << facts.title << ": nothing was changed\n";
      return kExitRefused;
    }
  }
  return cluster.run(cancel(*job, true, facts));
}

}  // namespace trainer
