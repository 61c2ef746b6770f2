#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "controller/local/kinds/cells.hh"
#include "controller/local/kinds/kinds.hh"
#include "controller/local/kinds/pod_spec.hh"
#include "kube/model/names.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"

namespace trainer::local {
namespace {

using kube::join_field;
using kube::join_index;

using Names = std::set<std::string_view>;

// A name that must be there, a DNS label, and given once.
void check_name(const Json& item, const std::string& path, Names& names, FieldErrors& errors) {
  const std::string at = join_field(path, "name");
  const std::string_view name = item.get_string("name");
  if (name.empty()) return errors.push_back(kube::required(at, ""));
  for (std::string& problem : kube::dns1123_label_problems(name))
    errors.push_back(kube::invalid(at, name, std::move(problem)));
  if (!names.insert(name).second) errors.push_back(kube::duplicate(at, name));
}

void check_word(const Json& object, std::string_view name, std::string_view path,
                const std::vector<std::string_view>& words, FieldErrors& errors) {
  const Json* word = object.find(name);
  if (word == nullptr || !word->is_string()) return;
  if (std::find(words.begin(), words.end(), word->as_string()) == words.end())
    errors.push_back(kube::not_supported(join_field(path, name), *word, words));
}

void check_env(const Json& container, const std::string& path, FieldErrors& errors) {
  const auto& env = container.get_array("env");
  for (std::size_t i = 0; i < env.size(); ++i) {
    const std::string at = join_index(join_field(path, "env"), i);
    if (env[i].get_string("name").empty())
      errors.push_back(kube::required(join_field(at, "name"), ""));
    if (!env[i].get_string("value").empty() && env[i].get("valueFrom").is_object())
      errors.push_back(kube::invalid(join_field(at, "valueFrom"), "",
                                     "may not be specified when `value` is not empty"));
  }
}

void check_ports(const Json& container, const std::string& path, FieldErrors& errors) {
  const auto& ports = container.get_array("ports");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string at = join_index(join_field(path, "ports"), i);
    const std::int64_t port = ports[i].get_int("containerPort");
    if (port < 1 || port > 65535)
      errors.push_back(kube::invalid(join_field(at, "containerPort"), port,
                                     "must be between 1 and 65535, inclusive"));
    check_word(ports[i], "protocol", at, {"SCTP", "TCP", "UDP"}, errors);
  }
}

void check_mounts(const Json& container, const std::string& path, const Names& volumes,
                  FieldErrors& errors) {
  const auto& mounts = container.get_array("volumeMounts");
  Names paths;
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const std::string at = join_index(join_field(path, "volumeMounts"), i);
    const std::string_view name = mounts[i].get_string("name");
    const std::string_view target = mounts[i].get_string("mountPath");
    if (!volumes.contains(name))
      errors.push_back(kube::invalid(join_field(at, "name"), name,
                                     "not found: no volume of the pod has this name"));
    if (target.empty()) errors.push_back(kube::required(join_field(at, "mountPath"), ""));
    if (!target.empty() && !paths.insert(target).second)
      errors.push_back(kube::invalid(join_field(at, "mountPath"), target, "must be unique"));
  }
}

// Requests may not be above limits.
void check_resources(const Json& container, const std::string& path, FieldErrors& errors) {
  const auto limits = kube::read_resources(container, "limits");
  for (const auto& [name, request] : kube::read_resources(container, "requests")) {
    const auto limit = limits.find(name);
    if (limit != limits.end() && limit->second < request)
      errors.push_back(kube::invalid(join_field(path, "resources.requests"), request.to_string(),
                                     "must be less than or equal to {} limit of {}", name,
                                     limit->second.to_string()));
  }
}

void check_containers(const Json& spec, std::string_view path, std::string_view list,
                      const Names& volumes, Names& names, FieldErrors& errors) {
  const auto& containers = spec.get_array(list);
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Json& container = containers[i];
    const std::string at = join_index(join_field(path, list), i);
    check_name(container, at, names, errors);
    if (container.get_string("image").empty())
      errors.push_back(kube::required(join_field(at, "image"), ""));
    check_word(container, "imagePullPolicy", at, {"Always", "IfNotPresent", "Never"}, errors);
    check_word(container, "terminationMessagePolicy", at, {"FallbackToLogsOnError", "File"},
               errors);
    check_env(container, at, errors);
    check_ports(container, at, errors);
    check_mounts(container, at, volumes, errors);
    check_resources(container, at, errors);
  }
}

Names check_volumes(const Json& spec, std::string_view path, FieldErrors& errors) {
  Names names;
  const auto& volumes = spec.get_array("volumes");
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const std::string at = join_index(join_field(path, "volumes"), i);
    check_name(volumes[i], at, names, errors);
    if (volumes[i].size() > 2)
      errors.push_back(kube::forbidden(at, "may not specify more than 1 volume type"));
  }
  return names;
}

// A pod's spec without what may change once it is stored: images, deadlines, further tolerations,
// scheduling gates that are removed, and the node, once (a binding).
Json unchanging_part(const Json& pod, const Json& before) {
  Json spec = pod.get("spec");
  for (const char* list : {"containers", "initContainers"})
    if (Json* containers = spec.find(list))
      for (Json& container : containers->as_array()) container.erase("image");
  for (const char* name : {"activeDeadlineSeconds", "tolerations", "schedulingGates"})
    spec.erase(name);
  if (before.get("spec").get_string("nodeName").empty()) spec.erase("nodeName");
  if (!before.get("spec").get_array("schedulingGates").empty())
    for (const char* name : {"nodeSelector", "affinity"}) spec.erase(name);
  return spec;
}

}  // namespace

void check_pod_spec(const Json& spec, std::string_view path, FieldErrors& errors) {
  const Names volumes = check_volumes(spec, path, errors);
  if (spec.get_array("containers").empty())
    errors.push_back(kube::required(join_field(path, "containers"), ""));
  Names names;
  for (const char* list : {"containers", "initContainers"})
    check_containers(spec, path, list, volumes, names, errors);
  check_word(spec, "restartPolicy", path, {"Always", "OnFailure", "Never"}, errors);
  check_word(spec, "dnsPolicy", path,
             {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"}, errors);
}

FieldErrors check_pod(const Json& pod, const Json* before) {
  FieldErrors errors;
  check_pod_spec(pod.get("spec"), "spec", errors);
  if (before != nullptr && unchanging_part(pod, *before) != unchanging_part(*before, *before))
    errors.push_back(kube::forbidden(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
        "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
        "set to 1 if it was previously negative)"));
  return errors;
}

ServedKind pod_kind(const BuiltinTypes& types) {
  return builtin_kind(
      types,
      {.resource = kube::kPods,
       .short_names = {"po"},
       .rules = {set_pod_defaults, check_pod},
       .columns = "Name,Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates",
       .cells = pod_cells,
       .has_status = true,
       .has_generation = true,
       .is_of_all = true});
}

}  // namespace trainer::local
