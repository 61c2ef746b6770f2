// This file has backoffLimit and activeDeadlineSeconds (pkg/core/job.go). Departures
// (docs/decisions/0056): a recreated pod counts as a restart; the restarts of deleted pods still
// count; the deadline ends a job on time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "kube/model/saturating.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

constexpr std::string_view kOutOfRetries = "it has reached the specified backoff limit";
constexpr std::string_view kTooLong = "it was active longer than specified deadline";

bool counts_restarts(const RoleState& role) {
  const std::string& policy = role.spec->restartPolicy;
  return policy == "OnFailure" || policy == "Always" || policy == "ExitCode";
}

// A container that was restarted `limit` times ends the job when the last of these runs has begun;
// upstream does the same. A failed pod ends the job if its recreation would be one too many. If no
// retry is allowed, any failed pod ends it, whatever the policy of its role.
bool exceeds_backoff_limit(const V1JobContext& context) {
  const auto limit = context.job.spec.runPolicy.backoffLimit;
  if (!limit) return false;
  std::int64_t total = context.status.restarts;
  std::int64_t failures = 0;
  bool is_retrying = false;
  for (const RoleState& role : context.roles) {
    for (const V1PodView* pod : role.pods) {
      if (pod == nullptr || context.counted_pods.contains(pod->uid)) continue;
      if (*limit == 0 && pod->phase == "Failed") return true;
      if (!counts_restarts(role)) continue;
      total = kube::saturating_add<std::int64_t>(total, pod->restarts);
      if (needs_restart(context.framework, role, *pod)) ++failures;
      is_retrying |= pod->restarts > 0 && !pod->is_over();
    }
  }
  return (is_retrying && total >= std::max(*limit, 1)) ||
         (failures > 0 && total + failures > *limit);
}

bool exceeds_deadline(V1JobContext& context) {
  const auto& seconds = context.job.spec.runPolicy.activeDeadlineSeconds;
  if (!seconds || !context.status.startTime) return false;
  const auto left = context.status.startTime->after(*seconds) - context.observed.now;
  if (left <= std::chrono::seconds(0)) return true;
  context.plan.due_within(left);
  return false;
}

bool has_failed_because(const JobStatus& status, std::string_view why) {
  return std::any_of(
      status.conditions.begin(), status.conditions.end(),
      [why](const JobCondition& one) { return one.type == kFailed && one.message.ends_with(why); });
}

}  // namespace

bool exceeds_limits(V1JobContext& context) {
  const bool is_out = exceeds_backoff_limit(context);
  if (!is_out && !exceeds_deadline(context)) return false;
  fail(context, fmt::format("Job {} has failed because {}", context.name(),
                            is_out ? kOutOfRetries : kTooLong));
  return true;
}

bool is_out_of_retries(const JobStatus& status) {
  return has_failed_because(status, kOutOfRetries);
}

bool is_out_of_time(const JobStatus& status) {
  return has_failed_because(status, kTooLong);
}

}  // namespace trainer::v1
