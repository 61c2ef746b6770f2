// These are `trainer suspend` and `trainer resume`.
#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "controller/cli/change_job.hh"
#include "controller/cli/workload.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

// Another client may write the object between the read and the patch so often.
constexpr int kMaxConflicts = 8;

std::string participle(bool is_suspended) {
  return is_suspended ? "suspended" : "resumed";
}

// Kueue sets `suspend` as its Workload says. Returns whether the job has one.
Task<Result<bool>> change_workloads(const JobInCluster& job, ChangeFacts facts, bool is_suspended) {
  if (facts.queue.empty()) co_return false;
  const auto found = co_await find_workloads(job.client(), facts.meta.ns, facts.meta.uid);
  if (!found) co_return tl::unexpected(found.error());
  bool is_changed = false;
  for (const Workload& each : *found) {
    if (each.is_active != is_suspended) continue;
    const auto done = co_await set_active(job.client(), each, !is_suspended);
    if (!done) co_return tl::unexpected(done.error());
    is_changed = true;
  }
  if (found->empty()) co_return false;
  const std::string what = is_suspended ? "Kueue ends its pods, and keeps it out of the queue"
                                        : "it waits in the queue until Kueue has room for it";
  job.console.out << fmt::format("{}: {}{} in queue {}: {}\n", facts.title,
                                 is_changed ? "" : "was already ", participle(is_suspended),
                                 facts.queue, what);
  co_return true;
}

// One try. nullopt says that another client has changed the object meanwhile.
Task<Result<std::optional<int>>> try_change(const JobInCluster& job, bool is_suspended) {
  const auto object = co_await job.get();
  if (!object) co_return tl::unexpected(object.error());
  const ChangeFacts facts = job.facts(*object);
  if (const auto why = change_refusal(facts, job.verb, job.console.program))
    co_return job.refuse(*why);
  const auto is_queued = co_await change_workloads(job, facts, is_suspended);
  if (!is_queued) co_return tl::unexpected(is_queued.error());
  if (*is_queued) co_return kExitDone;
  if (facts.is_suspended == is_suspended) {
    job.console.out << fmt::format("{}: was already {}\n", facts.title, participle(is_suspended));
    co_return kExitDone;
  }
  Json patch = suspend_patch(job.kind(), facts.meta, is_suspended);
  const auto done =
      co_await job.client().merge_patch(job.resource(), facts.meta.key(), std::move(patch));
  if (!done && done.error().code == kube::ErrorCode::kConflict) co_return std::nullopt;
  if (!done) co_return tl::unexpected(done.error());
  for (const std::string& note : suspend_notes(facts, is_suspended))
    job.console.err << note << '\n';
  job.console.out << fmt::format("{}: {}\n", facts.title, participle(is_suspended));
  co_return kExitDone;
}

Task<int> change(const JobInCluster& job, bool is_suspended) {
  for (int i = 0; i < kMaxConflicts; ++i) {
    const auto done = co_await try_change(job, is_suspended);
    if (!done) co_return job.report(done.error());
    if (*done) co_return **done;
  }
  co_return job.refuse(fmt::format("{} {}: others change it again and again: try it later",
                                   job.resource().kind, job.opened.key.to_string()));
}

int run_change(const JobOptions& options, bool is_suspended, const Registry& registry,
               Console& console) {
  const auto job = open_job(registry, is_suspended ? "suspend" : "resume", options, console);
  if (!job) return job.error();
  return job->opened.cluster->run(change(*job, is_suspended));
}

}  // namespace

int run_suspend(const JobOptions& options, const Registry& registry, Console& console) {
  return run_change(options, true, registry, console);
}

int run_resume(const JobOptions& options, const Registry& registry, Console& console) {
  return run_change(options, false, registry, console);
}

}  // namespace trainer
