#include "runtimes/trainjob/status.hh"

#include <utility>

#include "api/api.hh"
#include "kube/model/patch.hh"
#include "runtimes/lifecycle/reason.hh"
#include "runtimes/trainjob/phase.hh"

namespace trainer {

using kube::Json;

namespace {

std::string_view use_of(const TrainJobStatus& status) {
  return status.goodput ? std::string_view(status.goodput->current) : std::string_view();
}

}  // namespace

std::optional<Json> status_patch(const TrainJobStatus& before, const TrainJobStatus& after) {
  // Both sides are written in the same way, so members that are only spelled differently are equal.
  Json difference = kube::merge_diff(write(before), write(after));
  if (difference.is_null() || difference.empty()) return std::nullopt;
  return Json::object({{"status", std::move(difference)}});
}

bool is_minor_change(const TrainJobStatus& before, const TrainJobStatus& after) {
  // The status of a new job soon says more than that the job is being created: its pods explain it.
  // They also soon say that there is no room for them yet, which is so for most jobs of a burst.
  const bool is_explained_soon =
      !is_problem_reason(after.reason) || after.reason == reasons::kUnschedulable.name;
  const bool is_just_created = before.phase.empty() && is_explained_soon &&
                               (after.phase == "Pending" || after.phase == "Starting");
  return (before.phase == after.phase || is_just_created) &&
         before.conditions == after.conditions && before.restarts == after.restarts &&
         before.firstFailure.has_value() == after.firstFailure.has_value() &&
         before.stall.has_value() == after.stall.has_value() && before.hangs == after.hangs &&
         use_of(before) == use_of(after) && before.startTime == after.startTime &&
         before.completionTime == after.completionTime;
}

}  // namespace trainer
