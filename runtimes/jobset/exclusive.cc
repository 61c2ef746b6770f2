#include "runtimes/jobset/exclusive.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/names.hh"
#include "kube/model/resources.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/views/pod.hh"

namespace trainer::jobset {
namespace {

using kube::ErrorCode;
using kube::Json;

const Json& labels_of(const Json& pod) {
  return pod.get("metadata").get("labels");
}
const Json& annotations_of(const Json& pod) {
  return pod.get("metadata").get("annotations");
}

bool is_exclusive(const Json& pod) {
  return is_exclusively_placed(annotations_of(pod));
}

bool is_leader(const Json& pod) {
  return is_placement_leader(annotations_of(pod));
}

bool is_over(std::string_view phase) {
  return phase == "Failed" || phase == "Succeeded";
}

bool is_deleting(const Json& pod) {
  return !pod.get("metadata").get_string("deletionTimestamp").empty();
}

bool has_gone(const Json& pod) {
  return is_deleting(pod) || is_over(pod.get("status").get_string("phase"));
}

std::string topology_of(const Json& pod) {
  return std::string(annotations_of(pod).get_string(kExclusiveTopologyKey));
}

std::optional<std::string> controller_uid(const Json& pod) {
  for (const Json& owner : pod.get("metadata").get_array("ownerReferences")) {
    if (owner.get_bool("controller")) return std::string(owner.get_string("uid"));
  }
  return std::nullopt;
}

Json requirement(std::string_view key, std::string_view op, std::optional<std::string_view> value) {
  Json result = Json::object({{"key", key}, {"operator", op}});
  if (value) result.set("values", Json::array({*value}));
  return result;
}

// The term covers all namespaces: an empty namespaceSelector selects every one.
Json affinity_term(Json::Array requirements, const std::string& topology) {
  Json selector = Json::object({{"matchExpressions", std::move(requirements)}});
  return Json::object({{"labelSelector", std::move(selector)},
                       {"topologyKey", topology},
                       {"namespaceSelector", Json::object()}});
}

void append_term(Json& pod, std::string_view kind, Json term) {
  Json& affinity = object_at(object_at(object_at(pod, "spec"), "affinity"), kind);
  array_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution").push_back(std::move(term));
}

// The leader is placed together with the pods of its own Job, and apart from all others of equal
// priority: a more important Job may still preempt this one.
void set_leader_affinity(Json& pod) {
  const std::string topology = topology_of(pod);
  const std::string job(labels_of(pod).get_string(kJobKeyKey));
  const std::string priority(labels_of(pod).get_string(kPriorityKey));
  append_term(pod, "podAffinity", affinity_term({requirement(kJobKeyKey, "In", job)}, topology));
  append_term(pod, "podAntiAffinity",
              affinity_term({requirement(kJobKeyKey, "Exists", std::nullopt),
                             requirement(kJobKeyKey, "NotIn", job),
                             requirement(kPriorityKey, "In", priority)},
                            topology));
}

kube::Result<LeaderPod> find_leader(const Json& follower, const PlacementLookups& lookups) {
  auto base = leader_base_name(follower);
  if (!base) return tl::unexpected(base.error());
  const std::string ns(follower.get("metadata").get_string("namespace"));
  std::vector<LeaderPod> live;
  for (LeaderPod& pod : lookups.leaders(ns, *base)) {
    if (!pod.is_deleting && !is_over(pod.phase)) live.push_back(std::move(pod));
  }
  if (live.size() != 1) {
    return kube::fail(
        ErrorCode::kNotFound,
        "expected 1 leader pod ({}), but got {}. this is an expected, transient error", *base,
        live.size());
  }
  const auto owner = controller_uid(follower);
  if (!owner) return kube::fail(ErrorCode::kInvalid, "follower pod has no owner reference");
  LeaderPod& leader = live.front();
  if (leader.owner_uid.empty()) {
    return kube::fail(ErrorCode::kInvalid, "leader pod \"{}\" has no owner reference", leader.name);
  }
  // The leader of an earlier attempt may still exist.
  if (leader.owner_uid != *owner) {
    return kube::fail(ErrorCode::kConflict,
                      "follower pod owner UID ({}) != leader pod owner UID ({})", *owner,
                      leader.owner_uid);
  }
  return std::move(leader);
}

kube::Result<std::string> topology_value(const std::string& node, const std::string& topology,
                                         const PlacementLookups& lookups) {
  const auto labels = lookups.node_labels(node);
  if (!labels) return kube::fail(ErrorCode::kNotFound, "node {} not found", node);
  const auto label = labels->find(topology);
  if (label == labels->end()) {
    return kube::fail(ErrorCode::kInvalid, "node does not have topology label: {}", topology);
  }
  return label->second;
}

kube::Result<Json> place_follower(Json pod, const PlacementLookups& lookups) {
  const auto leader = find_leader(pod, lookups);
  if (!leader || leader->node.empty()) return pod;
  const std::string topology = topology_of(pod);
  auto value = topology_value(leader->node, topology, lookups);
  if (!value) return tl::unexpected(value.error());
  object_at(object_at(pod, "spec"), "nodeSelector")[topology] = std::move(*value);
  return pod;
}

kube::Action mark_disrupted(const Json& pod, const kube::ObjectKey& key, kube::Time now) {
  const kube::Condition condition{.type = "DisruptionTarget",
                                  .status = "True",
                                  .reason = "ExclusivePlacementViolation",
                                  .message = "Pod violated JobSet exclusive placement policy",
                                  .last_transition_time = now.whole_seconds()};
  // A merge patch replaces whole lists, so it has the other conditions, too.
  Json::Array conditions;
  for (const Json& stored : pod.get("status").get_array("conditions")) {
    if (stored.get_string("type") != condition.type) conditions.push_back(stored);
  }
  conditions.push_back(condition.to_json());
  const std::string_view version = pod.get("metadata").get_string("resourceVersion");
  return {
      .verb = kube::Action::Verb::kMergePatch,
      .resource = kube::kPods,
      .key = key,
      .subresource = "status",
      .body = Json::object({{"metadata", Json::object({{"resourceVersion", version}})},
                            {"status", Json::object({{"conditions", std::move(conditions)}})}})};
}

std::vector<kube::Action> removals(const std::vector<const Json*>& followers, kube::Time now) {
  std::vector<kube::Action> actions;
  for (const Json* pod : followers) {
    const Json& metadata = pod->get("metadata");
    const kube::ObjectKey key{std::string(metadata.get_string("namespace")),
                              std::string(metadata.get_string("name"))};
    if (!kube::has_condition(*pod, "DisruptionTarget"))
      actions.push_back(mark_disrupted(*pod, key, now));
    actions.push_back({.verb = kube::Action::Verb::kDelete,
                       .resource = kube::kPods,
                       .key = key,
                       .uid = std::string(metadata.get_string("uid")),
                       .propagation = "Background",
                       .stage = 1});  // after the marks: once it is gone the reason is lost
  }
  return actions;
}

}  // namespace

kube::Result<std::string> leader_base_name(const Json& pod) {
  const Json& labels = labels_of(pod);
  std::string name;
  for (const std::string_view key : {kJobSetNameKey, kReplicatedJobNameKey, kJobIndexKey}) {
    const std::string_view value = labels.get_string(key);
    if (value.empty()) {
      return kube::fail(ErrorCode::kInvalid, "pod missing label: {}", key);
    }
    name += fmt::format("{}-", value);
  }
  return name + "0";
}

const kube::JsonFilter& read_of_listed_pods() {
  using enum kube::JsonFilter::Members;
  static const kube::JsonFilter kRead{"",
                                      kInclude,
                                      {{"metadata", kExclude, {{"managedFields"}}},
                                       {"spec", kInclude, {{"nodeName"}, {"nodeSelector"}}},
                                       {"status", kInclude, {{"phase"}, {"conditions"}}}}};
  return kRead;
}

kube::Result<std::string> leader_selector(const Json& pod) {
  const Json& labels = labels_of(pod);
  std::string selector;
  for (const std::string_view key : {kJobSetNameKey, kReplicatedJobNameKey, kJobIndexKey}) {
    const std::string_view value = labels.get_string(key);
    // A review comes before the API server's own checks. A comma in the value would select
    // something else.
    if (const std::string problem = kube::check_label_value(value); !problem.empty()) {
      return kube::fail(ErrorCode::kInvalid, "pod label {}: {}", key, problem);
    }
    selector += fmt::format("{}{}={}", selector.empty() ? "" : ",", key, value);
  }
  // Older clusters have the index only as an annotation. Then all pods of the Job are read.
  if (labels.find(kCompletionIndexKey)) selector += fmt::format(",{}=0", kCompletionIndexKey);
  return selector;
}

std::optional<LeaderPod> read_leader(const Json& pod, std::string_view base_name) {
  const Json& metadata = pod.get("metadata");
  const std::string_view name = metadata.get_string("name");
  const auto end = name.rfind('-');
  if (end == std::string_view::npos || name.substr(0, end) != base_name) return std::nullopt;
  if (!annotations_of(pod).find(kExclusiveTopologyKey)) return std::nullopt;
  return LeaderPod{.name = std::string(name),
                   .owner_uid = controller_uid(pod).value_or(""),
                   .node = std::string(pod.get("spec").get_string("nodeName")),
                   .phase = std::string(pod.get("status").get_string("phase")),
                   .is_deleting = is_deleting(pod)};
}

kube::Result<Json> place_pod(Json pod, const PlacementLookups& lookups) {
  const Json& annotations = annotations_of(pod);
  if (!annotations.find(kJobSetNameKey) || annotations.find(kNodeSelectorKey)) return pod;
  const Json& priority = pod.get("spec").get("priority");
  if (priority.is_int()) {
    std::string text = std::to_string(priority.as_int());
    object_at(object_at(pod, "metadata"), "labels")[kPriorityKey] = std::move(text);
  }
  if (!is_exclusive(pod)) return pod;
  if (!is_leader(pod)) return place_follower(std::move(pod), lookups);
  set_leader_affinity(pod);
  return pod;
}

std::optional<std::string> deny_pod(const Json& pod, const PlacementLookups& lookups) {
  if (!is_exclusive(pod) || is_leader(pod)) return std::nullopt;
  const Json& selector = pod.get("spec").get("nodeSelector");
  if (!selector.is_object()) return "follower pod node selector not set";
  const std::string topology = topology_of(pod);
  if (!selector.find(topology)) {
    return fmt::format(
        "follower pod node selector for topology domain not found. missing selector: {}", topology);
  }
  const auto leader = find_leader(pod, lookups);
  if (!leader) return leader.error().message;
  if (leader->node.empty()) {
    return "leader pod not yet scheduled, not creating follower pod. this is an expected, "
           "transient error";
  }
  return std::nullopt;
}

bool is_scheduled_leader(const Json& pod) {
  const auto view = view_pod(pod);
  return view && view->is_exclusive_leader;
}

kube::Result<std::vector<kube::Action>> repair_placement(const Json& leader,
                                                         const std::vector<Json>& pods,
                                                         const PlacementLookups& lookups,
                                                         kube::Time now) {
  if (!is_scheduled_leader(leader)) return std::vector<kube::Action>();
  const std::string name(leader.get("metadata").get_string("name"));
  const std::string_view job = labels_of(leader).get_string(kJobKeyKey);
  const auto owner = controller_uid(leader);
  if (job.empty() || !owner) {
    return kube::fail(ErrorCode::kInvalid, "leader pod {} has no {}; its followers cannot be found",
                      name, job.empty() ? kJobKeyKey : "controller");
  }
  const std::string topology = topology_of(leader);
  const auto domain =
      topology_value(std::string(leader.get("spec").get_string("nodeName")), topology, lookups);
  if (!domain && domain.error().code != ErrorCode::kNotFound) return tl::unexpected(domain.error());
  std::vector<const Json*> followers;
  bool is_misplaced = false;
  for (const Json& pod : pods) {
    if (!is_exclusive(pod) || is_leader(pod) || controller_uid(pod) != owner) continue;
    if (has_gone(pod)) continue;
    const Json* chosen = pod.get("spec").get("nodeSelector").find(topology);
    is_misplaced = is_misplaced || !domain || !chosen || *chosen != Json(*domain);
    followers.push_back(&pod);
  }
  if (!is_misplaced) return std::vector<kube::Action>();
  // Without the node the right domain is unknown, so nothing is deleted.
  if (!domain) {
    return kube::fail(ErrorCode::kNotFound, "leader topology is unknown (node not found)");
  }
  return removals(followers, now);
}

}  // namespace trainer::jobset
