// This file decides whether and how a Job ends (pkg/controller/job/job_controller.go, syncJob).
// Failures come before successes.
#include <chrono>

#include "runtimes/batch/policies.hh"

namespace trainer::batch {
namespace {

using kube::Json;

// A verdict that an earlier plan has written is final.
bool read_stored(Context& context) {
  for (const bool is_success : {true, false}) {
    const Json* const stored =
        context.job.find_true(is_success ? "SuccessCriteriaMet" : "FailureTarget");
    if (stored == nullptr) continue;
    context.verdict = Verdict{is_success, std::string(stored->get_string("reason")),
                              std::string(stored->get_string("message")), true};
    return true;
  }
  return false;
}

void decide_by_pod_failure(Context& context) {
  for (const BatchPodView* pod : context.pods) {
    if (!context.is_failed(*pod)) continue;
    PolicyMatch match = match_pod_failure_policy(context.job, *pod);
    if (!match.job_failure.empty())
      return context.fail("PodFailurePolicy", std::move(match.job_failure));
  }
}

// Under restartPolicy OnFailure, containers are started again, not pods.
bool exceeds_restarts(const Context& context) {
  const Json& spec = context.job.pod_template().get("spec");
  if (spec.get_string("restartPolicy") != "OnFailure") return false;
  std::int64_t restarts = 0;
  for (const BatchPodView* pod : context.pods)
    if (pod->phase == "Running" || pod->phase == "Pending") restarts += pod->restarts;
  return restarts > 0 && restarts >= context.job.backoff_limit;
}

void decide_by_limits(Context& context) {
  if (context.failed > context.job.backoff_limit || exceeds_restarts(context))
    return context.fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
  const auto started = kube::Time::parse(context.status.get_string("startTime"));
  if (!context.job.active_deadline || context.job.is_suspended || !started) return;
  const auto left = started->after(*context.job.active_deadline) - context.observed.now;
  if (left <= std::chrono::seconds(0))
    return context.fail("DeadlineExceeded", "Job was active longer than specified deadline");
  context.plan.due_within(left);
}

void decide_by_indexes(Context& context) {
  const BatchJob& job = context.job;
  const std::int32_t failed = context.failed_indexes.total();
  if (job.max_failed_indexes && failed > *job.max_failed_indexes)
    return context.fail("MaxFailedIndexesExceeded",
                        "Job has exceeded the specified maximal number of failed indexes");
  if (failed > 0 && failed + context.succeeded >= job.completions.value_or(0))
    context.fail("FailedIndexes", "Job has failed indexes");
}

}  // namespace

void decide(Context& context) {
  if (read_stored(context)) return;
  for (const auto policy : {decide_by_pod_failure, decide_by_limits, decide_by_indexes}) {
    policy(context);
    if (context.verdict) return;
  }
  if (std::string message = match_success_policy(context); !message.empty())
    context.succeed("SuccessPolicy", std::move(message));
}

void decide_completion(Context& context) {
  const auto& completions = context.job.completions;
  const bool is_complete = completions ? context.succeeded >= *completions : context.succeeded > 0;
  if (is_complete && context.active_count == 0)
    context.succeed("CompletionsReached", "Reached expected number of succeeded pods");
}

}  // namespace trainer::batch
