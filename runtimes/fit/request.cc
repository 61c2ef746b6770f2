#include "runtimes/fit/request.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtimes/views/labels.hh"

namespace trainer::fit {
namespace {

using kube::Json;

constexpr std::string_view kAnyAddress = "0.0.0.0";

void add_host_ports(const Json& container, bool has_host_network, std::vector<HostPort>& ports) {
  for (const Json& port : container.get_array("ports")) {
    // The API server sets this default for pods in the network of their node.
    const std::int64_t number =
        port.get_int("hostPort", has_host_network ? port.get_int("containerPort") : 0);
    if (number <= 0) continue;
    const std::string_view ip = port.get_string("hostIP", kAnyAddress);
    ports.push_back({std::string(ip.empty() ? kAnyAddress : ip),
                     std::string(port.get_string("protocol", "TCP")), number});
  }
}

// The API server adds these keys to the selector when the pod is created.
void add_key_requirements(const Json& owner, const kube::StringMap& labels,
                          LabelSelector& selector) {
  using Operator = Requirement::Operator;
  for (const auto& [list, op] : {std::pair("matchLabelKeys", Operator::kIn),
                                 std::pair("mismatchLabelKeys", Operator::kNotIn)}) {
    for (const Json& key : owner.get_array(list)) {
      const auto at = key.is_string() ? labels.find(key.as_string()) : labels.end();
      if (at != labels.end()) selector.requirements.push_back({at->first, op, {at->second}});
    }
  }
}

std::vector<SpreadConstraint> read_spread(const Json& spec, const kube::StringMap& labels) {
  std::vector<SpreadConstraint> all;
  for (const Json& item : spec.get_array("topologySpreadConstraints")) {
    if (item.get_string("whenUnsatisfiable") == "ScheduleAnyway") continue;
    SpreadConstraint read;
    read.max_skew = item.get_int("maxSkew", 1);
    read.min_domains = item.get_int("minDomains", 1);
    read.topology_key = item.get_string("topologyKey");
    read.selector = LabelSelector::read(item.get("labelSelector"));
    add_key_requirements(item, labels, read.selector);
    read.honors_affinity = item.get_string("nodeAffinityPolicy", "Honor") == "Honor";
    read.honors_taints = item.get_string("nodeTaintsPolicy", "Ignore") == "Honor";
    all.push_back(std::move(read));
  }
  return all;
}

std::vector<Toleration> read_tolerations(const Json& spec) {
  std::vector<Toleration> all;
  for (const Json& item : spec.get_array("tolerations")) all.push_back(Toleration::read(item));
  // Admission gives them to each pod.
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    all.push_back({key, "Exists", "", "NoExecute"});
  return all;
}

// A container's limits are taken for its requests, so that one function adds both.
kube::ResourceList read_limits(const Json& pod) {
  Json spec = Json::object();
  for (const char* list : {"containers", "initContainers"}) {
    Json::Array containers;
    for (const Json& container : pod.get("spec").get_array(list)) {
      Json limited = Json::object(
          {{"resources", Json::object({{"requests", container.get("resources").get("limits")}})}});
      if (const std::string_view policy = container.get_string("restartPolicy"); !policy.empty())
        limited.set("restartPolicy", policy);
      containers.push_back(std::move(limited));
    }
    spec.set(list, std::move(containers));
  }
  return kube::pod_requests(Json::object({{"spec", std::move(spec)}}));
}

void add_undecided_volumes(const Json& spec, std::vector<std::string>& undecided) {
  for (const Json& volume : spec.get_array("volumes")) {
    const std::string_view claim = volume.get("persistentVolumeClaim").get_string("claimName");
    if (!claim.empty())
      undecided.push_back(fmt::format(
          "VolumeBinding: which nodes reach the PersistentVolumeClaim {} is not computed", claim));
    if (volume.find("ephemeral") != nullptr)
      undecided.push_back(fmt::format(
          "VolumeBinding: which nodes reach the volume {}, whose claim is made with the pod, is "
          "not computed",
          volume.get_string("name")));
  }
}

std::vector<std::string> find_undecided(const Json& pod) {
  const Json& spec = pod.get("spec");
  std::vector<std::string> undecided;
  if (const std::string_view key =
          pod.get_path({"metadata", "annotations"}).get_string(jobset::kExclusiveTopologyKey);
      !key.empty())
    undecided.push_back(fmt::format(
        "exclusive-topology: each Job has a {} of its own, which is not computed", key));
  add_undecided_volumes(spec, undecided);
  for (const Json& claim : spec.get_array("resourceClaims"))
    undecided.push_back(
        fmt::format("DynamicResources: whether devices are free for the claim {} is not computed",
                    claim.get_string("name")));
  for (const Json& gate : spec.get_array("schedulingGates"))
    undecided.push_back(fmt::format("SchedulingGates: the pod waits until the gate {} is removed",
                                    gate.get_string("name")));
  const std::string_view scheduler = spec.get_string("schedulerName", "default-scheduler");
  if (scheduler != "default-scheduler")
    undecided.push_back(fmt::format(
        "the scheduler {} places the pod, by rules and queues of its own besides those of "
        "kube-scheduler",
        scheduler));
  if (const std::string_view name = spec.get_string("runtimeClassName");
      !name.empty() && spec.get("overhead").empty())
    undecided.push_back(
        fmt::format("the overhead and the node selector of RuntimeClass {} are not counted", name));
  if (const std::string_view name = spec.get_string("priorityClassName"); !name.empty())
    undecided.push_back(fmt::format(
        "by its PriorityClass {} the pod may preempt others, which is not counted", name));
  return undecided;
}

}  // namespace

Taint Taint::read(const Json& taint) {
  return {std::string(taint.get_string("key")), std::string(taint.get_string("value")),
          std::string(taint.get_string("effect"))};
}

std::string Taint::to_string() const {
  return value.empty() ? fmt::format("{}:{}", key, effect)
                       : fmt::format("{}={}:{}", key, value, effect);
}

Toleration Toleration::read(const Json& toleration) {
  return {std::string(toleration.get_string("key")),
          std::string(toleration.get_string("operator", "Equal")),
          std::string(toleration.get_string("value")),
          std::string(toleration.get_string("effect"))};
}

bool Toleration::tolerates(const Taint& taint) const {
  if (!effect.empty() && effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  if (op == "Exists") return true;
  return (op.empty() || op == "Equal") && value == taint.value;
}

bool HostPort::conflicts(const HostPort& other) const {
  return port == other.port && protocol == other.protocol &&
         (ip == other.ip || ip == kAnyAddress || other.ip == kAnyAddress);
}

bool PodTerm::matches(const std::string& ns, const kube::StringMap& labels) const {
  return (has_all_namespaces || namespaces.contains(ns)) && selector.matches(labels);
}

std::vector<HostPort> read_host_ports(const Json& pod) {
  const Json& spec = pod.get("spec");
  const bool has_host_network = spec.get_bool("hostNetwork");
  std::vector<HostPort> ports;
  for (const Json& container : spec.get_array("containers"))
    add_host_ports(container, has_host_network, ports);
  for (const Json& container : spec.get_array("initContainers"))
    if (container.get_string("restartPolicy") == "Always")
      add_host_ports(container, has_host_network, ports);
  return ports;
}

std::vector<PodTerm> read_pod_terms(const Json& pod, std::string_view kind, const std::string& ns,
                                    std::vector<std::string>* undecided) {
  std::vector<PodTerm> terms;
  const Json& affinity = pod.get_path({"spec", "affinity", kind});
  for (const Json& item : affinity.get_array("requiredDuringSchedulingIgnoredDuringExecution")) {
    PodTerm read;
    read.topology_key = item.get_string("topologyKey");
    read.selector = LabelSelector::read(item.get("labelSelector"));
    add_key_requirements(item, kube::read_string_map(pod.get("metadata").find("labels")),
                         read.selector);
    for (const Json& name : item.get_array("namespaces"))
      if (name.is_string()) read.namespaces.insert(name.as_string());
    const Json& chosen = item.get("namespaceSelector");
    read.has_all_namespaces = chosen.is_object() && chosen.get_object("matchLabels").empty() &&
                              chosen.get_array("matchExpressions").empty();
    if (chosen.is_object() && !read.has_all_namespaces && undecided != nullptr)
      undecided->push_back(fmt::format(
          "InterPodAffinity: the namespaces that the {} over {} selects by label are not read",
          kind, read.topology_key));
    if (read.namespaces.empty() && !chosen.is_object()) read.namespaces.insert(ns);
    terms.push_back(std::move(read));
  }
  return terms;
}

PodRequest PodRequest::read(const Json& pod, const std::string& ns) {
  const Json& spec = pod.get("spec");
  PodRequest read;
  read.ns = ns;
  read.labels = kube::read_string_map(pod.get("metadata").find("labels"));
  read.requests = kube::pod_requests(pod);
  read.limits = read_limits(pod);
  read.tolerations = read_tolerations(spec);
  read.node_selector = kube::read_string_map(spec.find("nodeSelector"));
  const Json& required =
      spec.get_path({"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required.is_object()) {
    read.node_terms.emplace();
    for (const Json& term : required.get_array("nodeSelectorTerms"))
      read.node_terms->push_back(NodeTerm::read(term));
  }
  read.ports = read_host_ports(pod);
  read.spread = read_spread(spec, read.labels);
  read.undecided = find_undecided(pod);
  read.affinity = read_pod_terms(pod, "podAffinity", ns, &read.undecided);
  read.anti_affinity = read_pod_terms(pod, "podAntiAffinity", ns, &read.undecided);
  read.priority_class = spec.get_string("priorityClassName");
  read.has_deadline = spec.find("activeDeadlineSeconds") != nullptr;
  return read;
}

bool PodRequest::tolerates(const Taint& taint) const {
  return std::ranges::any_of(tolerations,
                             [&taint](const Toleration& each) { return each.tolerates(taint); });
}

void add_label_keys(const PodRequest& request, std::set<std::string, std::less<>>& keys) {
  const auto add = [&keys](const LabelSelector& selector) {
    for (const Requirement& each : selector.requirements) keys.insert(each.key);
  };
  for (const SpreadConstraint& each : request.spread) add(each.selector);
  for (const PodTerm& each : request.affinity) add(each.selector);
  for (const PodTerm& each : request.anti_affinity) add(each.selector);
}

}  // namespace trainer::fit
