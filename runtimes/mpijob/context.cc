#include "runtimes/mpijob/context.hh"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "kube/model/visible_text.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;

constexpr std::size_t kMaxMessage = 1'024;  // the limit of an event; conditions have it, too

std::string readable(std::string message) {
  message = kube::visible_text(std::move(message));
  if (message.size() > kMaxMessage) message = kube::keep_head(message, kMaxMessage - 3) + "...";
  return message;
}

}  // namespace

MPIJobContext::MPIJobContext(const MPIJobObserved& of)
    : observed(of), job(with_defaults(of.job)), status(of.job.status) {}

void MPIJobContext::place_workers() {
  workers.resize(static_cast<std::size_t>(worker_count(job)));
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < workers.size(); ++i)
    places.emplace(worker_name(name(), static_cast<std::int32_t>(i)), i);
  for (const v1::V1PodView* pod : observed.workers) {
    const auto place = places.find(pod->name);
    if (place == places.end())
      surplus.push_back(pod);
    else
      workers[place->second] = pod;
  }
}

bool MPIJobContext::set_condition(std::string_view type, bool is_true, std::string_view reason,
                                  std::string message) {
  v1::JobCondition condition;
  condition.type = type;
  condition.status = is_true ? "True" : "False";
  condition.reason = reason;
  condition.message = readable(std::move(message));
  condition.lastUpdateTime = condition.lastTransitionTime = observed.now.whole_seconds();
  auto& all = status.conditions;
  if (const v1::JobCondition* before = status.find(type);
      before && before->status == condition.status) {
    if (before->reason == condition.reason) return false;
    condition.lastTransitionTime = before->lastTransitionTime;
  }
  std::erase_if(all, [type](const v1::JobCondition& one) { return one.type == type; });
  // An end turns the others off, without a word about it.
  if (is_true && (type == kSucceeded || type == kFailed))
    for (const std::string_view other : {kRunning, kFailed})
      if (v1::JobCondition* one = status.find(other)) one->status = "False";
  all.push_back(std::move(condition));
  return true;
}

void MPIJobContext::report(std::string_view type, std::string_view reason, std::string message) {
  kube::PlannedEvent event;
  event.type = type;
  event.reason = reason;
  event.message = readable(std::move(message));
  plan.events.push_back(std::move(event));
}

void MPIJobContext::relay(std::string_view type, std::string_view reason, std::string message) {
  const auto [at, is_new] = plan.relayed.insert(fmt::format("{} {}", reason, message));
  // An earlier process has made the events of a job that has a status.
  const bool is_known =
      observed.relayed ? observed.relayed->contains(*at) : !observed.job.status.conditions.empty();
  if (!is_new || is_known) return;
  report(type, reason, std::move(message));
}

kube::Action& MPIJobContext::act(kube::Action::Verb verb, const kube::Resource& resource,
                                 std::string object_name, int stage) {
  kube::Action& action = plan.actions.emplace_back();
  action.verb = verb;
  action.resource = resource;
  action.key = {job.metadata.ns, std::move(object_name)};
  action.stage = stage;
  return action;
}

void MPIJobContext::create(const kube::Resource& resource, std::string object_name, Json body,
                           int stage) {
  const kube::OwnerReference owner{kMPIJobs.api_version(), kMPIJobs.kind, name(),
                                   job.metadata.uid,       true,          true};
  body.set("apiVersion", resource.api_version()).set("kind", resource.kind);
  body["metadata"]
      .set("name", object_name)
      .set("namespace", job.metadata.ns)
      .set("ownerReferences", Json::array({owner.to_json()}));
  kube::Action& action = act(kube::Action::Verb::kCreate, resource, std::move(object_name), stage);
  action.body = std::move(body);
  action.owner_uid = job.metadata.uid;
}

void MPIJobContext::patch(const kube::Resource& resource, std::string object_name, Json body,
                          int stage, std::string_view subresource) {
  kube::Action& action =
      act(kube::Action::Verb::kMergePatch, resource, std::move(object_name), stage);
  action.body = std::move(body);
  action.subresource = subresource;
}

void MPIJobContext::remove(const kube::Resource& resource, std::string object_name,
                           std::string uid) {
  act(kube::Action::Verb::kDelete, resource, std::move(object_name), kService).uid = std::move(uid);
}

}  // namespace trainer::mpijob
