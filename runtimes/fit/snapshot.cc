#include "runtimes/fit/snapshot.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/json_cursor.hh"
#include "kube/model/json_text.hh"
#include "kube/model/text.hh"

namespace trainer::fit {
namespace {

using kube::Json;
using kube::JsonFilter;

JsonFilter included(std::string_view name, std::vector<JsonFilter> below) {
  return {name, JsonFilter::Members::kInclude, std::move(below)};
}
JsonFilter included(std::string_view name) {
  return {name, JsonFilter::Members::kExclude, {}};
}

const JsonFilter& node_filter() {
  static const JsonFilter filter =
      included("", {included("metadata", {included("name"), included("labels")}),
                    included("spec", {included("unschedulable"), included("taints")}),
                    included("status", {included("allocatable")})});
  return filter;
}

const JsonFilter& pod_meta_filter() {
  static const JsonFilter filter = included(
      "", {included("name"), included("namespace"), included("labels"), included("ownerReferences"),
           included("creationTimestamp"), included("deletionTimestamp")});
  return filter;
}

const JsonFilter& pod_spec_filter() {
  static const JsonFilter filter = included(
      "", {included("containers", {included("resources"), included("ports")}),
           included("initContainers",
                    {included("resources"), included("ports"), included("restartPolicy")}),
           included("overhead"), included("resources"), included("hostNetwork"),
           included("affinity",
                    {included("podAntiAffinity",
                              {included("requiredDuringSchedulingIgnoredDuringExecution")})})});
  return filter;
}

std::string_view unquoted(std::string_view text) {
  return text.size() < 2 ? std::string_view() : text.substr(1, text.size() - 2);
}

// These are the parts of a pod's text that are read.
struct PodText {
  std::string_view metadata;
  std::string_view spec;
  std::string_view node;
  std::string_view phase;

  static PodText find(std::string_view text) {
    PodText found;
    std::string_view status;
    for (kube::JsonCursor at(text); at.next();) {
      const auto value = at.value();
      if (!value) break;
      if (at.name() == "metadata") found.metadata = *value;
      if (at.name() == "spec") found.spec = *value;
      if (at.name() == "status") status = *value;
    }
    found.node = member(found.spec, "nodeName");
    found.phase = member(status, "phase");
    return found;
  }

 private:
  static std::string_view member(std::string_view object, std::string_view name) {
    for (kube::JsonCursor at(object); at.next();) {
      const auto value = at.value();
      if (!value) break;
      if (at.name() == name) return unquoted(*value);
    }
    return {};
  }
};

}  // namespace

SnapshotReader::SnapshotReader(ResourceTable resources,
                               std::set<std::string, std::less<>> label_keys,
                               std::vector<JobLabel> job_labels)
    : label_keys_(std::move(label_keys)), job_labels_(std::move(job_labels)) {
  snapshot_.resources = std::move(resources);
}

void SnapshotReader::add_node(std::string_view text) {
  const auto object = kube::parse_json(text, {}, node_filter());
  if (!object) return;
  Node node;
  const auto meta = kube::ObjectMeta::of(*object);
  node.name = meta.name;
  node.labels = meta.labels;
  for (const Json& taint : object->get("spec").get_array("taints"))
    node.taints.push_back(Taint::read(taint));
  node.is_unschedulable = object->get("spec").get_bool("unschedulable");
  node.allocatable = snapshot_.resources.read(
      kube::read_resource_list(object->get("status").get_object("allocatable")));
  node_of_[node.name] = snapshot_.nodes.size();
  snapshot_.nodes.push_back(std::move(node));
}

std::size_t SnapshotReader::find_shape(std::string_view spec) {
  auto filtered = kube::filter_json(spec, pod_spec_filter(), kube::JsonLimits().max_depth);
  const auto [at, is_new] = shape_of_.emplace(filtered.value_or("{}"), shapes_.size());
  if (!is_new) return at->second;
  const Json pod = Json::object({{"spec", kube::parse_json(at->first).value_or(Json::object())}});
  Shape shape{snapshot_.resources.read(kube::pod_requests(pod)), read_host_ports(pod), Json()};
  shape.requests[ResourceTable::kPods] = 1;
  if (pod.get("spec").find("affinity") != nullptr) shape.spec = pod.get("spec");
  shapes_.push_back(std::move(shape));
  return at->second;
}

std::size_t SnapshotReader::find_holder(const kube::ObjectMeta& pod) {
  Holder holder{"pod", pod.ns, pod.name, pod.creation_timestamp};
  if (const kube::OwnerReference* owner = pod.controller()) {
    holder.kind = kube::to_lower(owner->kind);
    holder.name = owner->name;
  }
  for (const JobLabel& each : job_labels_) {
    const auto at = pod.labels.find(each.key);
    if (at == pod.labels.end()) continue;
    holder.kind = each.kind;
    holder.name = at->second;
    break;
  }
  auto& holders = snapshot_.holders;
  const auto [at, is_new] = holder_of_.emplace(
      fmt::format("{}/{}/{}", holder.kind, holder.ns, holder.name), holders.size());
  if (is_new)
    holders.push_back(std::move(holder));
  else if (auto& since = holders[at->second].since; !since || holder.since < since)
    since = holder.since;
  return at->second;
}

kube::StringMap SnapshotReader::chosen_labels(const kube::StringMap& labels) const {
  kube::StringMap chosen;
  for (const auto& [key, value] : labels)
    if (label_keys_.contains(key)) chosen.emplace(key, value);
  return chosen;
}

PodGroup SnapshotReader::make_group(const kube::ObjectMeta& pod, const Shape& shape) const {
  PodGroup group;
  group.ns = pod.ns;
  group.labels = chosen_labels(pod.labels);
  group.requests = shape.requests;
  group.ports = shape.ports;
  if (!shape.spec.is_null())
    group.anti_affinity =
        read_pod_terms(Json::object({{"spec", shape.spec}}), "podAntiAffinity", pod.ns, nullptr);
  group.is_terminating = pod.deletion_timestamp.has_value();
  const kube::OwnerReference* owner = pod.controller();
  group.is_of_node = owner != nullptr && (owner->kind == "DaemonSet" || owner->kind == "Node");
  return group;
}

void SnapshotReader::add_pod(std::string_view text) {
  const PodText found = PodText::find(text);
  if (found.phase == "Succeeded" || found.phase == "Failed") return;
  if (found.node.empty()) {
    ++snapshot_.waiting_pods;
    return;
  }
  const auto node = node_of_.find(std::string(found.node));
  const auto metadata = kube::parse_json(found.metadata, {}, pod_meta_filter());
  if (node == node_of_.end() || !metadata) return;
  const auto meta = kube::ObjectMeta::of(Json::object({{"metadata", *metadata}}));
  const std::size_t shape = find_shape(found.spec);
  PodGroup group = make_group(meta, shapes_[shape]);
  group.holder = find_holder(meta);
  const auto [at, is_new] =
      group_of_.emplace(fmt::format("{} {} {}{} {} {}", shape, group.holder,
                                    group.is_terminating ? 1 : 0, group.is_of_node ? 1 : 0,
                                    group.ns, kube::print_json(kube::to_json(group.labels))),
                        static_cast<std::uint32_t>(snapshot_.groups.size()));
  if (is_new) snapshot_.groups.push_back(std::move(group));
  auto& pods = snapshot_.nodes[node->second].pods;
  const auto same =
      std::ranges::find_if(pods, [&at](const auto& each) { return each.first == at->second; });
  if (same == pods.end())
    pods.emplace_back(at->second, 1);
  else
    ++same->second;
}

void SnapshotReader::add_quota(std::string_view text) {
  const auto object = kube::parse_json(text);
  if (!object) return;
  Quota quota;
  quota.name = object->get("metadata").get_string("name");
  // A quota that no controller has counted yet has no status.
  const Json& status = object->get("status");
  const Json& hard =
      status.get("hard").is_object() ? status.get("hard") : object->get("spec").get("hard");
  if (hard.is_object()) quota.hard = kube::read_resource_list(hard.as_object());
  quota.used = kube::read_resource_list(status.get_object("used"));
  for (const Json& scope : object->get("spec").get_array("scopes"))
    if (scope.is_string()) quota.scopes.push_back({scope.as_string(), "Exists", {}});
  for (const Json& item : object->get("spec").get("scopeSelector").get_array("matchExpressions")) {
    Quota::Scope scope{
        std::string(item.get_string("scopeName")), std::string(item.get_string("operator")), {}};
    for (const Json& value : item.get_array("values"))
      if (value.is_string()) scope.values.push_back(value.as_string());
    quota.scopes.push_back(std::move(scope));
  }
  snapshot_.quotas.push_back(std::move(quota));
}

Snapshot SnapshotReader::take() {
  return std::move(snapshot_);
}

}  // namespace trainer::fit
