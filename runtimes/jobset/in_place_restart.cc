// Containers restart inside their pods here (JobSet, pkg/controllers), gate InPlaceRestart. An
// agent in every pod writes the attempt that the pod has reached; this file brings the attempts
// together.

#include <algorithm>
#include <optional>
#include <vector>

#include "kube/model/saturating.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

// Returns the attempts of all pods that may still run; nullopt if one of them is no number.
std::optional<std::vector<std::int32_t>> read_attempts(JobSetContext& context) {
  std::vector<std::int32_t> attempts;
  for (const PodView* pod : context.observed.pods) {
    if (pod->phase == "Failed" || !pod->in_place_attempt) continue;
    const auto attempt = parse_count(*pod->in_place_attempt);
    if (!attempt) {
      context.warn("MalformedPodAnnotation",
                   "in-place restarts are paused: annotation {} of pod {} is \"{}\", "
                   "which is not a number; delete the pod",
                   kInPlaceRestartAttemptKey, pod->name, *pod->in_place_attempt);
      return std::nullopt;
    }
    attempts.push_back(*attempt);
  }
  return attempts;
}

// Returns how many pods there are when all run; nullopt if a template does not say.
std::optional<std::int64_t> count_pods(JobSetContext& context) {
  std::int64_t total = 0;
  for (const ReplicatedJobState& rjob : context.rjobs) {
    const auto parallelism = job_number(*rjob.spec, "parallelism");
    if (!parallelism || parallelism != job_number(*rjob.spec, "completions")) {
      context.warn("InvalidInPlaceRestart",
                   "in-place restarts are paused: replicated job {} must set "
                   "completions and parallelism to the same number",
                   rjob.spec->name);
      return std::nullopt;
    }
    total = kube::saturating_add(
        total, kube::saturating_multiply<std::int64_t>(rjob.replicas, *parallelism));
  }
  return total;
}

std::int32_t restart_limit(const JobSetContext& context) {
  return context.jobset.spec.failurePolicy->maxRestarts.value_or(0);
}

bool has_container_beyond_limit(const JobSetContext& context) {
  const auto& pods = context.observed.pods;
  return std::any_of(
      pods.begin(), pods.end(),
      [limit = restart_limit(context)](const PodView* pod) { return pod->restart_count > limit; });
}

bool is_attempt_beyond_limit(const JobSetContext& context, std::int32_t largest_attempt) {
  const std::int32_t uncounted = context.status.restarts - context.status.restartsCountTowardsMax;
  return largest_attempt - uncounted > restart_limit(context);
}

// The Jobs that this reconcile was about to start are not started: a JobSet that has ended starts
// no pods.
void fail_at_limit(JobSetContext& context) {
  std::erase_if(context.plan.actions, [](const kube::Action& action) {
    return action.verb != kube::Action::Verb::kDelete;
  });
  fail(context, reasons::kReachedMaxRestarts,
       "jobset failed due to reaching max number of restarts");
}

}  // namespace

bool restarts_in_place(const JobSet& jobset, const Gates& gates) {
  const auto& policy = jobset.spec.failurePolicy;
  return gates.in_place_restart && policy &&
         policy->restartStrategy.value_or("Recreate") == "InPlaceRestart";
}

void track_in_place_restarts(JobSetContext& context) {
  if (!restarts_in_place(context.jobset, context.observed.gates)) return;
  // This limit does not depend on the annotations.
  if (has_container_beyond_limit(context)) return fail_at_limit(context);
  const auto attempts = read_attempts(context);
  if (!attempts) return;
  const std::int32_t largest =
      attempts->empty() ? 0 : *std::max_element(attempts->begin(), attempts->end());
  if (is_attempt_beyond_limit(context, largest)) return fail_at_limit(context);
  const auto total = count_pods(context);
  if (!total || attempts->empty()) return;
  const bool is_same = std::all_of(attempts->begin(), attempts->end(),
                                   [&](std::int32_t attempt) { return attempt == largest; });
  if (is_same && static_cast<std::int64_t>(attempts->size()) == *total) {
    context.status.currentInPlaceRestartAttempt = largest;
    return;
  }
  if (largest == 0) return;
  // The attempt never becomes lower: a pod that has to leave an attempt must not get the order
  // to stay in it.
  auto& previous = context.status.previousInPlaceRestartAttempt;
  previous = std::max(previous.value_or(largest - 1), largest - 1);
}

}  // namespace trainer::jobset
