#include <string>
#include <string_view>

#include "kube/model/pod_template.hh"
#include "local/kinds/pod_spec.hh"
#include "local/kinds/types.hh"

namespace trainer::local {
namespace {

// Returns whether it is the latest image: an image without a tag is; one with a digest is not.
bool is_latest(std::string_view image) {
  if (image.empty() || image.find('@') != image.npos) return false;
  const std::size_t slash = image.rfind('/');
  const std::string_view name = slash == image.npos ? image : image.substr(slash + 1);
  const std::size_t colon = name.find(':');
  return colon == name.npos || name.substr(colon + 1) == "latest";
}

void set_action_defaults(Json& action) {
  Json* http = action.find("httpGet");
  if (http == nullptr) return;
  set_default(*http, "path", "/");
  set_default(*http, "scheme", "HTTP");
}

void set_probe_defaults(Json& probe) {
  set_action_defaults(probe);
  set_default(probe, "timeoutSeconds", 1);
  set_default(probe, "periodSeconds", 10);
  set_default(probe, "successThreshold", 1);
  set_default(probe, "failureThreshold", 3);
}

void set_field_defaults(Json& from) {
  if (Json* field = from.find("fieldRef")) set_default(*field, "apiVersion", "v1");
}

void set_container_defaults(Json& container) {
  const bool is_always_pulled = is_latest(container.get_string("image"));
  set_default(container, "imagePullPolicy", is_always_pulled ? "Always" : "IfNotPresent");
  set_default(container, "terminationMessagePath", "/dev/termination-log");
  set_default(container, "terminationMessagePolicy", "File");
  set_default(container, "resources", Json::object());
  for (const char* name : {"livenessProbe", "readinessProbe", "startupProbe"})
    if (Json* probe = container.find(name)) set_probe_defaults(*probe);
  if (Json* lifecycle = container.find("lifecycle"))
    for (auto& [name, action] : lifecycle->as_object())
      if (action.is_object()) set_action_defaults(action);
  if (Json* env = container.find("env"))
    for (Json& variable : env->as_array())
      if (Json* from = variable.find("valueFrom")) set_field_defaults(*from);
}

void set_volume_defaults(Json& volume) {
  if (volume.size() < 2) volume.set("emptyDir", Json::object());  // only a name
  constexpr int kMode = 0644;
  for (const char* name : {"configMap", "secret", "downwardAPI", "projected"})
    if (Json* source = volume.find(name)) set_default(*source, "defaultMode", kMode);
  if (Json* path = volume.find("hostPath")) set_default(*path, "type", "");
  const auto set_items = [](Json& source) {
    if (Json* items = source.find("items"))
      for (Json& item : items->as_array()) set_field_defaults(item);
  };
  if (Json* downward = volume.find("downwardAPI")) set_items(*downward);
  Json* projected = volume.find("projected");
  Json* sources = projected == nullptr ? nullptr : projected->find("sources");
  if (sources == nullptr) return;
  for (Json& source : sources->as_array()) {
    if (Json* token = source.find("serviceAccountToken"))
      set_default(*token, "expirationSeconds", 3600);
    if (Json* downward = source.find("downwardAPI")) set_items(*downward);
  }
}

// Sets a container's requests if it has only limits.
void set_requests(Json& container) {
  Json* resources = container.find("resources");
  Json* limits = resources == nullptr ? nullptr : resources->find("limits");
  if (limits == nullptr) return;
  const Json stated = *limits;
  Json& requests = (*resources)["requests"];
  for (const auto& [name, amount] : stated.as_object()) set_default(requests, name, amount);
}

void for_each_container(Json& spec, void (*change)(Json& container)) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"})
    if (Json* containers = spec.find(list))
      for (Json& container : containers->as_array()) change(container);
}

void use_host_ports(Json& container) {
  if (Json* ports = container.find("ports"))
    for (Json& port : ports->as_array()) set_default(port, "hostPort", port.get("containerPort"));
}

// The rule is that of k8s.io/kubernetes/pkg/apis/core/v1/helper/qos: only cpu and memory count.
std::string_view qos_class(const Json& spec) {
  bool has_any = false, is_guaranteed = true;
  for (const char* list : {"initContainers", "containers"})
    for (const Json& container : spec.get_array(list)) {
      const Json& resources = container.get("resources");
      for (const char* name : {"cpu", "memory"}) {
        const Json& limit = resources.get("limits").get(name);
        const Json& request = resources.get("requests").get(name);
        has_any = has_any || !limit.is_null() || !request.is_null();
        if (limit.is_null() || limit != request) is_guaranteed = false;
      }
    }
  return !has_any ? "BestEffort" : is_guaranteed ? "Guaranteed" : "Burstable";
}

// Does what the admission plugin DefaultTolerationSeconds does: adds one for each taint that no
// toleration of the pod names.
void add_tolerations(Json& spec) {
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    bool is_tolerated = false;
    for (const Json& toleration : spec.get_array("tolerations")) {
      const std::string_view of = toleration.get_string("key");
      const std::string_view effect = toleration.get_string("effect");
      if ((of.empty() || of == key) && (effect.empty() || effect == "NoExecute"))
        is_tolerated = true;
    }
    if (!is_tolerated)
      spec["tolerations"].push_back(Json::object({{"effect", "NoExecute"},
                                                  {"key", key},
                                                  {"operator", "Exists"},
                                                  {"tolerationSeconds", 300}}));
  }
}

}  // namespace

void set_pod_spec_defaults(Json& spec) {
  if (!spec.is_object()) return;
  kube::canonicalise_quantities(spec);
  set_default(spec, "dnsPolicy", "ClusterFirst");
  set_default(spec, "restartPolicy", "Always");
  set_default(spec, "securityContext", Json::object());
  set_default(spec, "terminationGracePeriodSeconds", 30);
  set_default(spec, "schedulerName", "default-scheduler");
  for_each_container(spec, set_container_defaults);
  if (Json* volumes = spec.find("volumes"))
    for (Json& volume : volumes->as_array()) set_volume_defaults(volume);
  if (spec.get_bool("hostNetwork")) for_each_container(spec, use_host_ports);
}

void set_pod_defaults(Json& pod) {
  if (!pod.get("spec").is_object()) return;
  Json& status = pod["status"];  // this comes first: a new member moves the others
  Json* spec = pod.find("spec");
  set_pod_spec_defaults(*spec);
  for_each_container(*spec, set_requests);
  set_default(*spec, "enableServiceLinks", true);
  set_default(*spec, "serviceAccountName", "default");
  set_default(*spec, "serviceAccount", spec->get("serviceAccountName"));
  set_default(*spec, "preemptionPolicy", "PreemptLowerPriority");
  set_default(*spec, "priority", 0);
  add_tolerations(*spec);
  set_default(status, "phase", "Pending");
  set_default(status, "qosClass", qos_class(*spec));
}

}  // namespace trainer::local
