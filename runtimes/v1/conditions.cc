// The conditions of V1 jobs (pkg/util/status.go).
#include <algorithm>
#include <utility>

#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

// Returns whether one condition replaces the other: Running and Restarting do.
bool replaces(std::string_view type, std::string_view other) {
  return type == other || (type == kRunning && other == kRestarting) ||
         (type == kRestarting && other == kRunning);
}

}  // namespace

bool set_condition(JobStatus& status, JobCondition condition) {
  if (status.is_true(kFailed)) return false;
  if (const JobCondition* before = status.find(condition.type);
      before && before->status == condition.status) {
    if (before->reason == condition.reason) return false;
    condition.lastTransitionTime = before->lastTransitionTime;
  }
  std::erase_if(status.conditions, [&condition](const JobCondition& one) {
    return replaces(condition.type, one.type);
  });
  if (condition.type == kFailed || condition.type == kSucceeded)
    if (JobCondition* running = status.find(kRunning)) running->status = "False";
  // Created is the first condition, also if it is set late.
  const auto place =
      condition.type == kCreated ? status.conditions.begin() : status.conditions.end();
  status.conditions.insert(place, std::move(condition));
  return true;
}

}  // namespace trainer::v1
