#include "controller/kinds/common/v1_hooks.hh"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <string>
#include <utility>

#include "kube/model/pod_checks.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/views/labels.hh"

namespace trainer {

using kube::FieldErrors;
using kube::Json;

Rendered render_children(std::vector<Json> children) {
  Rendered rendered;
  std::set<std::string> seen;
  for (Json& child : children) {
    FieldErrors errors;
    if (child.get_string("kind") == "Pod") kube::check_pod_template(child, "", errors);
    if (errors.empty())
      rendered.objects.push_back({std::move(child), {}});
    else if (seen.insert(kube::to_string(errors)).second)
      for (kube::FieldError& error : of_child(child, std::move(errors)))
        rendered.errors.push_back(std::move(error));
  }
  return rendered;
}

ObjectState state_of_conditions(const v1::V1Job& job, std::string_view manager) {
  ObjectState state;
  // The column STATE of kubectl shows the same, but only conditions that are True count here.
  for (const v1::JobCondition& condition : job.status.conditions) {
    if (!condition.is_true() || condition.type == kReplicaFailure) continue;
    state.phase = condition.type;
    state.reason = condition.reason;
    state.message = condition.message;
  }
  state.is_failed = state.phase == "Failed";
  state.is_finished = state.is_failed || state.phase == "Succeeded";
  if (!state.phase.empty()) return state;
  const auto& other = job.spec.runPolicy.managedBy;
  state.message = !other || *other == manager
                      ? std::string("no controller has reconciled this job yet")
                      : fmt::format("spec.runPolicy.managedBy leaves this job to {}", *other);
  return state;
}

void add_refusal(const v1::JobStatus& status, ObjectState& state) {
  const v1::JobCondition* refusal = nullptr;
  for (const v1::JobCondition& condition : status.conditions)
    if (condition.is_true() && condition.type == kReplicaFailure) refusal = &condition;
  if (!refusal || state.is_finished) return;
  state.reason = refusal->reason;
  state.message = refusal->message;
  state.next_step = advice_for(refusal->reason, refusal->message);
}

std::optional<PodPlace> read_role_place(const kube::ObjectMeta& pod, std::string_view role_key) {
  const auto role = pod.labels.find(role_key);
  if (role == pod.labels.end()) return std::nullopt;
  PodPlace place;
  place.role = role->second;
  if (const auto at = pod.labels.find(kV1ReplicaIndexKey); at != pod.labels.end())
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), place.index);
  return place;
}

}  // namespace trainer
