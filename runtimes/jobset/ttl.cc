// The end of a finished JobSet: jobset-contract 3.10.
#include <chrono>
#include <utility>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

// When the first of the ending conditions became True.
std::optional<kube::Time> finish_time(const JobSetStatus& status) {
  for (const kube::Condition& condition : status.conditions) {
    if (condition.is_true() && (condition.type == kCompleted || condition.type == kFailed)) {
      return condition.last_transition_time;
    }
  }
  return std::nullopt;
}

}  // namespace

void expire(Pass& pass) {
  const auto& ttl = pass.jobset.spec.ttlSecondsAfterFinished;
  if (!ttl) return;
  const auto finished = finish_time(pass.status);
  if (!finished) {
    pass.warn("MissingFinishTime",
              "ttlSecondsAfterFinished cannot be kept: the condition that ended this JobSet has no "
              "lastTransitionTime; delete the JobSet by hand");
    return;
  }
  const kube::Time expiry = *finished + std::chrono::seconds(*ttl);
  if (pass.observed.now < expiry) {
    pass.plan.requeue_after =
        std::chrono::ceil<std::chrono::milliseconds>(expiry - pass.observed.now);
    return;
  }
  Action action;
  action.verb = Action::Verb::kDelete;
  action.resource = kJobSets;
  action.key = pass.jobset.metadata.key();
  action.propagation = "Foreground";
  action.uid = pass.jobset.metadata.uid;
  pass.plan.actions.push_back(std::move(action));
}

}  // namespace trainer::jobset
