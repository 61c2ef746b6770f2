// The conditions of V1 jobs (pkg/util/status.go).
#include <algorithm>
#include <utility>

#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

JobCondition* find(std::vector<JobCondition>& conditions, std::string_view type) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [type](const JobCondition& one) { return one.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

// Returns whether one condition replaces the other: Running and Restarting do.
bool replaces(std::string_view type, std::string_view other) {
  return type == other || (type == kRunning && other == kRestarting) ||
         (type == kRestarting && other == kRunning);
}

}  // namespace

bool set_condition(JobStatus& status, JobCondition condition) {
  if (is_condition_true(status, kFailed)) return false;
  if (const JobCondition* before = find(status.conditions, condition.type);
      before && before->status == condition.status) {
    if (before->reason == condition.reason) return false;
    condition.lastTransitionTime = before->lastTransitionTime;
  }
  std::erase_if(status.conditions, [&condition](const JobCondition& one) {
    return replaces(condition.type, one.type);
  });
  if (condition.type == kFailed || condition.type == kSucceeded)
    if (JobCondition* running = find(status.conditions, kRunning)) running->status = "False";
  // Created is the first condition, also if it is set late.
  const auto place =
      condition.type == kCreated ? status.conditions.begin() : status.conditions.end();
  status.conditions.insert(place, std::move(condition));
  return true;
}

void keep_times(JobStatus& status, const JobStatus& before) {
  for (JobCondition& condition : status.conditions) {
    for (const JobCondition& stored : before.conditions) {
      if (stored.type != condition.type || stored.status != condition.status ||
          stored.reason != condition.reason || stored.message != condition.message)
        continue;
      condition.lastUpdateTime = stored.lastUpdateTime;
      condition.lastTransitionTime = stored.lastTransitionTime;
    }
  }
}

bool is_condition_true(const JobStatus& status, std::string_view type) {
  return std::any_of(status.conditions.begin(), status.conditions.end(),
                     [type](const JobCondition& one) { return one.type == type && one.is_true(); });
}

}  // namespace trainer::v1
