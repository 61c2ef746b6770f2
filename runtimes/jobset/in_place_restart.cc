// Restarts of containers inside their pods: jobset-contract 3.8, gate InPlaceRestart. An agent in
// every pod writes the attempt that the pod has reached; here the attempts are brought together.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

// The attempts of all pods that may still run; nullopt when one of them is no number.
std::optional<std::vector<std::int32_t>> read_attempts(Pass& pass) {
  std::vector<std::int32_t> attempts;
  for (const PodView* pod : pass.observed.pods) {
    if (pod->phase == "Failed" || !pod->in_place_attempt) continue;
    const auto attempt = parse_count(*pod->in_place_attempt);
    if (!attempt) {
      pass.warn(
          "MalformedPodAnnotation",
          fmt::format("in-place restarts stand still: annotation {} of pod {} is \"{}\", which "
                      "is not a number; delete the pod",
                      kInPlaceRestartAttemptKey, pod->name, *pod->in_place_attempt));
      return std::nullopt;
    }
    attempts.push_back(*attempt);
  }
  return attempts;
}

// How many pods there are when all run; nullopt when a template does not say.
std::optional<std::int64_t> count_pods(Pass& pass) {
  std::int64_t total = 0;
  for (const Wave& wave : pass.waves) {
    const auto parallelism = job_number(*wave.spec, "parallelism");
    if (!parallelism || parallelism != job_number(*wave.spec, "completions")) {
      pass.warn("InvalidInPlaceRestart",
                fmt::format("in-place restarts stand still: replicated job {} must set completions "
                            "and parallelism to the same number",
                            wave.spec->name));
      return std::nullopt;
    }
    total += wave.replicas * *parallelism;
  }
  return total;
}

std::int32_t restart_limit(const Pass& pass) {
  return pass.jobset.spec.failurePolicy->maxRestarts.value_or(0);
}

bool has_container_beyond_limit(const Pass& pass) {
  const auto& pods = pass.observed.pods;
  return std::any_of(pods.begin(), pods.end(), [limit = restart_limit(pass)](const PodView* pod) {
    return pod->restart_count > limit;
  });
}

bool is_attempt_beyond_limit(const Pass& pass, std::int32_t largest_attempt) {
  const std::int32_t uncounted = pass.status.restarts - pass.status.restartsCountTowardsMax;
  return largest_attempt - uncounted > restart_limit(pass);
}

// Whatever this pass was about to start stays away: what has ended starts no pods.
void fail_at_limit(Pass& pass) {
  std::erase_if(pass.plan.actions,
                [](const Action& action) { return action.verb != Action::Verb::kDelete; });
  fail(pass, "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts");
}

}  // namespace

bool restarts_in_place(const JobSet& jobset, const Gates& gates) {
  const auto& policy = jobset.spec.failurePolicy;
  return gates.in_place_restart && policy &&
         policy->restartStrategy.value_or("Recreate") == "InPlaceRestart";
}

void track_in_place_restarts(Pass& pass) {
  if (!restarts_in_place(pass.jobset, pass.observed.gates)) return;
  // Whatever the annotations say.
  if (has_container_beyond_limit(pass)) return fail_at_limit(pass);
  const auto attempts = read_attempts(pass);
  if (!attempts) return;
  const std::int32_t largest =
      attempts->empty() ? 0 : *std::max_element(attempts->begin(), attempts->end());
  if (is_attempt_beyond_limit(pass, largest)) return fail_at_limit(pass);
  const auto total = count_pods(pass);
  if (!total || attempts->empty()) return;
  const bool is_same = std::all_of(attempts->begin(), attempts->end(),
                                   [&](std::int32_t attempt) { return attempt == largest; });
  if (is_same && static_cast<std::int64_t>(attempts->size()) == *total) {
    pass.status.currentInPlaceRestartAttempt = largest;
    return;
  }
  if (largest == 0) return;
  // Never lower: a pod that has been told to leave an attempt must not be told to stay.
  auto& previous = pass.status.previousInPlaceRestartAttempt;
  previous = std::max(previous.value_or(largest - 1), largest - 1);
}

}  // namespace trainer::jobset
