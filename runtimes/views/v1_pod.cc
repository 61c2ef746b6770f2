#include "runtimes/views/v1_pod.hh"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/saturating.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/text.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

constexpr std::size_t kMaxTroubleText = 900;  // an event's message has at most 1,024 bytes

// Returns whether the latest run that has ended, ended with a failure.
bool has_failed(const Json& container) {
  const Json& now = container.get("state").get("terminated");
  const Json& ended = now.is_object() ? now : container.get("lastState").get("terminated");
  return ended.get_int("exitCode") != 0;
}

void add_trouble(V1PodView& view, std::string_view reason, std::string message) {
  view.troubles.push_back({std::string(reason), keep_head(message, kMaxTroubleText)});
}

// The words are those of pkg/core/job.go, RecordAbnormalPods.
void read_container_trouble(V1PodView& view, const Json& container) {
  const std::string_view name = container.get_string("name");
  const Json& ended = container.get("state").get("terminated");
  if (ended.get_int("exitCode") != 0)
    add_trouble(
        view, ended.get_string("reason"),
        fmt::format("Error pod {} container {} exitCode: {} terminated message: {}", view.name,
                    name, ended.get_int("exitCode"), ended.get_string("message")));
  const Json& waiting = container.get("state").get("waiting");
  if (!waiting.get_string("message").empty())
    add_trouble(view, waiting.get_string("reason"),
                fmt::format("Error pod {} container {} waiting message: {}", view.name, name,
                            waiting.get_string("message")));
}

// The condition that changed last counts. Times are RFC 3339 in UTC, whose texts are in order.
void read_condition_trouble(V1PodView& view, const Json& status) {
  const Json::Array& conditions = status.get_array("conditions");
  const auto newest =
      std::max_element(conditions.begin(), conditions.end(), [](const Json& a, const Json& b) {
        return a.get_string("lastTransitionTime") < b.get_string("lastTransitionTime");
      });
  if (newest == conditions.end() || newest->get_string("status") == "True") return;
  add_trouble(
      view, newest->get_string("reason"),
      fmt::format("Error pod {} condition message: {}", view.name, newest->get_string("message")));
}

void read_containers(V1PodView& view, const Json& status) {
  const Json::Array& containers = status.get_array("containerStatuses");
  const Json::Array& init_containers = status.get_array("initContainerStatuses");
  std::int64_t restarts = 0;
  for (const Json::Array* list : {&init_containers, &containers})
    for (const Json& container : *list)
      restarts = kube::saturating_add(restarts, container.get_int("restartCount"));
  view.restarts = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(restarts, 0, std::numeric_limits<std::int32_t>::max()));
  for (const Json& container : view.phase == "Pending" ? init_containers : containers) {
    if (!has_failed(container)) continue;
    view.has_failed_last = true;
    view.is_backing_off |= !container.get("state").get("running").is_object();
  }
  for (const Json& container : containers) {
    const Json& ended = container.get("state").get("terminated");
    if (ended.is_object())
      view.exits.push_back({std::string(container.get_string("name")),
                            static_cast<std::int32_t>(ended.get_int("exitCode"))});
  }
  if (view.phase == "Succeeded" || view.phase == "Failed" || view.is_deleting) return;
  for (const Json& container : containers.empty() ? init_containers : containers)
    read_container_trouble(view, container);
  if (containers.empty() && init_containers.empty()) read_condition_trouble(view, status);
}

const kube::JsonFilter& seen_of_pods() {
  using enum kube::JsonFilter::Members;
  static const std::vector<kube::JsonFilter> kContainer{
      {"name"}, {"state"}, {"lastState"}, {"restartCount"}};
  static const kube::JsonFilter kSeen{
      "",
      kInclude,
      {kube::metadata_with({{"creationTimestamp"},
                            {"deletionTimestamp"},
                            {"deletionGracePeriodSeconds"},
                            {"ownerReferences"},
                            {"labels", kInclude, {{kV1JobNameKey}, {kV1ReplicaTypeKey}}}}),
       {"spec", kInclude, {{"nodeName"}, {"activeDeadlineSeconds"}}},
       {"status",
        kInclude,
        {{"phase"},
         {"reason"},
         {"message"},
         {"conditions"},
         {"initContainerStatuses", kInclude, kContainer},
         {"containerStatuses", kInclude, kContainer}}}}};
  return kSeen;
}

}  // namespace

std::optional<std::int32_t> V1PodView::exit_code_of(std::string_view container) const {
  for (const Exit& exit : exits)
    if (exit.container == container) return exit.code;
  return std::nullopt;
}

std::shared_ptr<V1PodView> view_pod(const Json& pod) {
  auto common = trainer::view_pod(pod);
  if (!common) return nullptr;
  auto view = std::make_shared<V1PodView>();
  static_cast<trainer::PodView&>(*view) = std::move(*common);
  const kube::ObjectMeta meta = kube::ObjectMeta::of(pod);
  if (const auto* owner = meta.controller()) view->owner_uid = owner->uid;
  const Json& labels = pod.get("metadata").get("labels");
  view->job = labels.get_string(kV1JobNameKey);
  view->replica_type = labels.get_string(kV1ReplicaTypeKey);
  const Json& deadline = pod.get("spec").get("activeDeadlineSeconds");
  if (deadline.is_int()) view->active_deadline = deadline.as_int();
  view->reason = pod.get("status").get_string("reason");
  view->message = keep_head(pod.get("status").get_string("message"), kMaxTroubleText);
  view->created = meta.creation_timestamp;
  read_containers(*view, pod.get("status"));
  return view;
}

std::shared_ptr<V1PodView> transform_pod(std::string_view json_text) {
  const auto pod = kube::parse_json(json_text, kube::kObjectLimits, seen_of_pods());
  return pod ? view_pod(*pod) : nullptr;
}

}  // namespace trainer::v1
