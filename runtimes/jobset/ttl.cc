// A finished JobSet is deleted here (JobSet, pkg/controllers/ttl_after_finished.go).
#include "runtimes/lifecycle/ttl.hh"

#include <utility>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

// Returns when the first of the ending conditions became True.
std::optional<kube::Time> finish_time(const JobSetStatus& status) {
  for (const kube::Condition& condition : status.conditions) {
    if (condition.is_true() && (condition.type == kCompleted || condition.type == kFailed)) {
      return condition.last_transition_time;
    }
  }
  return std::nullopt;
}

}  // namespace

void expire(JobSetContext& context) {
  const auto& ttl = context.jobset.spec.ttlSecondsAfterFinished;
  if (!ttl || context.plan.requeue_after) return;  // not before all Jobs have been deleted
  const auto finished = finish_time(context.status);
  if (!finished) {
    context.warn("MissingFinishTime",
                 "ttlSecondsAfterFinished cannot be kept: the condition that ended this JobSet has "
                 "no lastTransitionTime; delete the JobSet by hand");
    return;
  }
  if (auto removal = trainer::expire(context.plan, kJobSets, context.jobset.metadata,
                                     finished->after(*ttl), context.observed.now))
    context.plan.actions.push_back(*std::move(removal));
}

}  // namespace trainer::jobset
