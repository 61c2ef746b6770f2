#include "runtimes/trainjob/process_restarts.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/saturating.hh"
#include "runtimes/lifecycle/reason.hh"
#include "runtimes/pipeline/failure_policy.hh"
#include "runtimes/trainjob/conditions.hh"

namespace trainer {
namespace {

// Returns the restarts of earlier attempts, by what the last plan knew: nullptr for the first one
// of this process. `counted` is the number in the status.
std::int32_t earlier_restarts(const ProcessRestartCount* last, const HeartbeatFacts& heartbeats,
                              std::int32_t counted) {
  if (last == nullptr) return std::max(counted - heartbeats.process_restarts, 0);
  // A JobSet that is made again counts its attempts from 0, and its ranks restart less often.
  const bool is_same =
      last->attempt == heartbeats.restarts && heartbeats.process_restarts >= last->restarts;
  return is_same ? last->earlier : counted;
}

}  // namespace

void settle_process_restarts(const TrainJobObserved& observed, const JobSet* jobset,
                             bool has_heartbeats, TrainJobStatus& status, TrainJobPlan& plan) {
  if (!jobset || !jobset->metadata.annotations.contains(pipeline::kProcessRestartsKey)) return;
  if (has_heartbeats && !is_finished(status)) {
    const HeartbeatFacts& heartbeats = *observed.heartbeats;
    const std::int32_t counted = status.processRestarts.value_or(0);
    const auto& last = observed.process_restarts;
    const std::int32_t earlier = earlier_restarts(last ? &*last : nullptr, heartbeats, counted);
    plan.process_restarts = ProcessRestartCount{heartbeats.restarts, heartbeats.process_restarts,
                                                earlier, heartbeats.resizes};
    status.processRestarts =
        std::max(counted, kube::saturating_add(earlier, heartbeats.process_restarts));
    if (heartbeats.restarts_at_one_step >= kMaxRestartsAtOneStep)
      fail(status, reasons::kProcessesKeepFailing,
           fmt::format("processes were started again {} times in a row in their pods, each time at "
                       "step {} of the process",
                       heartbeats.restarts_at_one_step, heartbeats.last_step),
           observed.now);
  }
  if (status.processRestarts.value_or(0) > 0)
    status.restartBudget += fmt::format(" ({} in pods)", *status.processRestarts);
}

}  // namespace trainer
