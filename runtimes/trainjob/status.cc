#include "runtimes/trainjob/status.hh"

#include <utility>

#include "api/api.hh"
#include "kube/model/patch.hh"
#include "runtimes/trainjob/phase.hh"

namespace trainer {

using kube::Json;

std::optional<Json> status_patch(const TrainJobStatus& before, const TrainJobStatus& after) {
  // Both sides are written the same way, so a member that only reads differently is no difference.
  Json difference = kube::merge_diff(write(before), write(after));
  if (difference.is_null() || difference.empty()) return std::nullopt;
  return Json::object({{"status", std::move(difference)}});
}

bool is_minor_change(const TrainJobStatus& before, const TrainJobStatus& after) {
  // The pods of a new job soon say more than that it is being created. So will that there is no
  // room for them yet, as for most of a burst.
  const bool is_explained_soon =
      !is_problem_reason(after.reason) || after.reason == "Unschedulable";
  const bool is_just_created = before.phase.empty() && is_explained_soon &&
                               (after.phase == "Pending" || after.phase == "Starting");
  return (before.phase == after.phase || is_just_created) &&
         before.conditions == after.conditions && before.restarts == after.restarts &&
         before.firstFailure.has_value() == after.firstFailure.has_value() &&
         before.startTime == after.startTime && before.completionTime == after.completionTime;
}

}  // namespace trainer
