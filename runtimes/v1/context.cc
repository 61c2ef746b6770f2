#include "runtimes/v1/context.hh"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <unordered_map>
#include <utility>

#include "kube/model/resources.hh"
#include "kube/model/visible_text.hh"
#include "runtimes/v1/policies.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

RoleState make_role(const V1JobContext& context, std::string_view name, const ReplicaSpec& spec) {
  RoleState role;
  role.name = name;
  role.type = to_lower(name);
  role.spec = &spec;
  if (!context.is_too_large) role.replicas = std::max(spec.replicas.value_or(1), 0);
  role.pods.resize(static_cast<std::size_t>(role.replicas));
  for (std::int32_t i = 0; i < role.replicas; ++i)
    role.names.push_back(pod_name(context.name(), context.framework, name, i));
  if (context.framework.has_selector)
    role.counters.selector = selector_of(context.framework, context.name(), role.type);
  return role;
}

// Such an object is not watched, so it is read again at this interval.
constexpr std::chrono::seconds kBlockedInterval{10};

bool owns(const V1Job& job, const Json& object) {
  const kube::ObjectMeta meta = kube::ObjectMeta::of(object);
  return meta.controller() != nullptr && meta.controller()->uid == job.metadata.uid;
}

}  // namespace

Json trim_dependent(const V1Job& job, Json object) {
  if (owns(job, object)) return object;
  const Json& owners = object.get("metadata").get("ownerReferences");
  return Json::object({{"metadata", Json::object({{"ownerReferences", owners}})}});
}

V1JobContext::V1JobContext(const Observed& of)
    : observed(of),
      framework(of.framework),
      job(with_defaults(of.framework, of.job)),
      status(of.job.status),
      counted_pods(of.job.status.restartedPods.begin(), of.job.status.restartedPods.end()),
      is_too_large(too_large(of.framework, job, of.settings).has_value()) {
  for (const std::string_view role : framework.roles)
    if (const auto spec = job.spec.replicaSpecs.find(role); spec != job.spec.replicaSpecs.end())
      roles.push_back(make_role(*this, role, spec->second));
  // A TFJob may have roles of any name: these get pods, and never decide about the job.
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    if (!framework.knows(role)) roles.push_back(make_role(*this, role, spec));
  std::unordered_map<std::string_view, const V1PodView**> places;
  for (RoleState& role : roles)
    for (std::size_t i = 0; i < role.names.size(); ++i) places[role.names[i]] = &role.pods[i];
  for (const V1PodView* pod : observed.pods) {
    const auto place = places.find(pod->name);
    if (place != places.end())
      *place->second = pod;
    else if (!pod->replica_type.empty())
      surplus.push_back(pod);
  }
}

const RoleState* V1JobContext::find_role(std::string_view role) const {
  const auto found = std::find_if(roles.begin(), roles.end(),
                                  [role](const RoleState& one) { return one.name == role; });
  return found == roles.end() ? nullptr : &*found;
}

std::string V1JobContext::reason_of(std::string_view reason) const {
  return framework.resource.kind + std::string(reason);
}

bool V1JobContext::set_condition(std::string_view type, bool is_true, std::string_view reason,
                                 std::string message) {
  JobCondition condition;
  condition.type = type;
  condition.status = is_true ? "True" : "False";
  condition.reason = reason_of(reason);
  condition.message = kube::visible_text(std::move(message));
  condition.lastUpdateTime = condition.lastTransitionTime = observed.now.whole_seconds();
  return v1::set_condition(status, std::move(condition));
}

bool V1JobContext::is_true(std::string_view type) const {
  return status.is_true(type);
}

void V1JobContext::report(std::string_view type, std::string reason, std::string message) {
  message = kube::visible_text(std::move(message));  // set_condition() stores this form
  const auto& stored = observed.job.status.conditions;
  const bool is_known = std::any_of(stored.begin(), stored.end(), [&](const JobCondition& one) {
    return one.reason == reason && one.message == message;
  });
  if (is_known) return;
  kube::PlannedEvent event;
  event.type = type;
  // Several events may report why a job has ended; the end is counted once.
  using End = kube::PlannedEvent::End;
  const bool is_counted =
      std::any_of(plan.events.begin(), plan.events.end(),
                  [](const kube::PlannedEvent& other) { return other.end != End::kNone; });
  if (!is_counted && reason == reason_of(kFailed)) event.end = End::kFailed;
  if (!is_counted && reason == reason_of(kSucceeded)) event.end = End::kSucceeded;
  event.reason = std::move(reason);
  event.message = std::move(message);
  plan.events.push_back(std::move(event));
}

void V1JobContext::note(std::string_view type, std::string_view reason, std::string message) {
  kube::PlannedEvent event;
  event.type = type;
  event.reason = reason;
  event.message = std::move(message);
  event.time = kube::PlannedEvent::Time::kAfterActions;
  plan.events.push_back(std::move(event));
}

void V1JobContext::relay(std::string_view type, std::string_view reason,
                         const std::string& message) {
  const std::uint64_t hash = std::hash<std::string>()(std::string(reason) + message);
  plan.relayed.insert(hash);
  const bool is_known =
      observed.relayed ? observed.relayed->contains(hash) : !observed.job.status.conditions.empty();
  if (!is_known) note(type, reason, message);
}

bool V1JobContext::block(std::string message) {
  relay("Warning", "ErrResourceExists", message);
  plan.requeue_within(kBlockedInterval);
  blocked = WaitingCause{"ChildNameTaken", std::move(message)};
  return false;
}

kube::Action& V1JobContext::act(kube::Action::Verb verb, const kube::Resource& resource,
                                std::string object_name) {
  kube::Action& action = plan.actions.emplace_back();
  action.verb = verb;
  action.resource = resource;
  action.key = {job.metadata.ns, std::move(object_name)};
  return action;
}

void V1JobContext::create(const kube::Resource& resource, std::string object_name, Json body,
                          int stage, std::string_view failure_reason) {
  body.set("apiVersion", resource.api_version()).set("kind", resource.kind);
  const auto& meta = job.metadata;
  const kube::OwnerReference owner{
      framework.resource.api_version(), framework.resource.kind, meta.name, meta.uid, true, true};
  body["metadata"]
      .set("name", object_name)
      .set("namespace", meta.ns)
      .set("ownerReferences", Json::array({owner.to_json()}));
  kube::Action& action = act(kube::Action::Verb::kCreate, resource, std::move(object_name));
  action.body = std::move(body);
  action.owner_uid = meta.uid;
  action.stage = stage;
  action.failure_reason = failure_reason;
}

void V1JobContext::remove(const kube::Resource& resource, const std::string& object_name,
                          std::string uid, std::string_view failure_reason) {
  kube::Action& action = act(kube::Action::Verb::kDelete, resource, object_name);
  action.uid = std::move(uid);
  action.failure_reason = failure_reason;
}

void V1JobContext::remove_pod(const V1PodView& pod) {
  if (pod.is_deleting) return;
  remove(kube::kPods, pod.name, pod.uid, "FailedDeletePod");
  note("Normal", "SuccessfulDeletePod", "Deleted pod: " + pod.name);
}

void V1JobContext::remove_service(const ServiceView& service) {
  if (service.is_deleting) return;
  remove(kube::kServices, service.name, service.uid, "FailedDeleteService");
  if (service.name != name())  // the Service of the job comes and goes without events
    note("Normal", "SuccessfulDeleteService", "Deleted service: " + service.name);
}

void V1JobContext::patch(const kube::Resource& resource, const std::string& object_name, Json body,
                         int stage) {
  kube::Action& action = act(kube::Action::Verb::kMergePatch, resource, object_name);
  action.body = std::move(body);
  action.stage = stage;
}

const Json* V1JobContext::find_dependent(const kube::Resource& resource,
                                         const std::string& object_name) {
  const kube::Resource* const groups = pod_groups_of(observed.settings);
  if (observed.watched_pod_group && groups && resource == *groups)
    return observed.watched_pod_group->get();
  if (const auto* known = observed.objects.find(resource, object_name)) return known->object.get();
  plan.needs_objects.push_back({resource, {job.metadata.ns, object_name}});
  return nullptr;
}

bool V1JobContext::is_owner_of(const Json& object) const {
  return owns(job, object);
}

}  // namespace trainer::v1
