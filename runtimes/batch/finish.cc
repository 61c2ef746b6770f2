// A Job that ends gets its conditions here (pkg/controller/job/job_controller.go,
// enactJobFinished), and is deleted after ttlSecondsAfterFinished
// (pkg/controller/ttlafterfinished).
#include <algorithm>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/batch/policies.hh"
#include "runtimes/lifecycle/ttl.hh"

namespace trainer::batch {
namespace {

// Returns whether all pods are counted, and none is terminating.
bool is_settled(const Context& context) {
  return context.terminating == 0 && context.status.get("uncountedTerminatedPods").empty() &&
         std::none_of(context.pods.begin(), context.pods.end(),
                      [](const BatchPodView* pod) { return pod->is_tracked; });
}

void report_end(Context& context, const Verdict& verdict) {
  if (verdict.is_success) {
    if (context.job.completions && context.status.get_int("succeeded") > *context.job.completions)
      context.report("Warning", "TooManySucceededPods",
                     "Too many succeeded pods running after completion count reached");
    context.report("Normal", "Completed", "Job completed");
  } else {
    context.report("Warning", verdict.reason, verdict.message);
  }
  using End = kube::PlannedEvent::End;
  context.plan.events.back().end = verdict.is_success ? End::kSucceeded : End::kFailed;
}

}  // namespace

void write_verdict(Context& context) {
  if (!context.verdict) return;
  const Verdict& verdict = *context.verdict;
  if (!verdict.is_stored) {
    context.set_condition(verdict.is_success ? "SuccessCriteriaMet" : "FailureTarget", true,
                          verdict.reason, verdict.message);
    return;
  }
  if (!is_settled(context)) return;
  context.set_condition(verdict.is_success ? "Complete" : "Failed", true, verdict.reason,
                        verdict.message);
  if (verdict.is_success) context.status.set("completionTime", context.observed.now.to_string());
  report_end(context, verdict);
}

void expire(Context& context) {
  if (!context.job.ttl || context.job.is_deleting()) return;
  const kube::Json* end = context.job.find_true("Complete");
  if (end == nullptr) end = context.job.find_true("Failed");
  const auto finished = kube::Time::parse(end->get_string("lastTransitionTime"));
  if (!finished) return;
  auto removal = trainer::expire(context.plan, kube::kJobs, context.job.metadata,
                                 finished->after(*context.job.ttl), context.observed.now);
  if (!removal) return;
  removal->stage = kSecond;
  context.plan.actions.push_back(*std::move(removal));
}

}  // namespace trainer::batch
