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
  // A job's first status is none: it keeps what only the plan that builds the children knows.
  return before.phase == after.phase && before.conditions == after.conditions &&
         before.restarts == after.restarts &&
         before.firstFailure.has_value() == after.firstFailure.has_value() &&
         before.startTime == after.startTime && before.completionTime == after.completionTime;
}

}  // namespace trainer
