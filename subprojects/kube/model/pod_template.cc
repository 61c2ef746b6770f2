#include "kube/model/pod_template.hh"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>

#include "kube/model/json_text.hh"

namespace kube {
namespace {

const Json* find_named(const Json& pod_template, std::string_view list, std::string_view name) {
  for (const Json& container : pod_template.get("spec").get_array(list)) {
    const Json& own = container.get("name");
    if (own.is_string() && own.as_string() == name) return &container;
  }
  return nullptr;
}

// Returns whether both have the member with the same value, or both lack it.
bool same_member(const Json& a, const Json& b, std::string_view name) {
  const Json* in_a = a.find(name);
  const Json* in_b = b.find(name);
  return in_a && in_b ? *in_a == *in_b : in_a == in_b;
}

// Replaces the first item that has the same value in one of `keys`, else appends.
Json upsert(Json& list, Json item, std::initializer_list<std::string_view> keys) {
  if (list.is_null()) list = Json::array();
  Json::Array& items = list.as_array();
  const auto at = std::ranges::find_if(items, [&](const Json& other) {
    return std::ranges::any_of(keys, [&](auto key) { return same_member(other, item, key); });
  });
  if (at == items.end()) {
    items.push_back(std::move(item));
    return {};
  }
  Json replaced = *at == item ? Json() : std::move(*at);
  *at = std::move(item);
  return replaced;
}

void add_strings(Json& pod_template, std::string_view member, const StringMap& strings) {
  if (strings.empty()) return;
  Json& target = pod_template["metadata"][member];
  for (const auto& [name, value] : strings) target.set(name, value);
}

void add_to(ResourceList& sum, const ResourceList& amounts) {
  for (const auto& [name, amount] : amounts) sum[name] += amount;
}

void raise_to(ResourceList& most, const ResourceList& amounts) {
  for (const auto& [name, amount] : amounts) {
    const auto [at, is_new] = most.emplace(name, amount);
    if (!is_new && at->second < amount) at->second = amount;
  }
}

ResourceList container_requests(const Json& container) {
  ResourceList requests = read_resources(container, "requests");
  requests.merge(read_resources(container, "limits"));
  return requests;
}

bool is_pod_level(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource.substr(0, 10) == "hugepages-";
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The users of such maps choose the names in them, so no name below has its usual meaning.
bool is_string_map(std::string_view name, const Json& value) {
  return value.is_object() && is_one_of(name, {"annotations", "data", "labels", "matchLabels",
                                               "nodeSelector", "options", "volumeAttributes"});
}

void canonicalise(Json& amount) {
  if (const auto quantity = Quantity::read(amount)) amount = quantity->to_string();
}

// Returns whether core/v1 declares the member `omitempty` and without a pointer. `parent` is the
// member, or the list, that contains the object, since one name means different things: the key of
// a toleration may be empty, that of a Secret is required. Members that are missing here (`name`,
// `protocol`) have defaults in CRDs, or are rarely written.
bool is_omitted_when_zero(std::string_view parent, std::string_view name) {
  if (parent == "spec")  // in a PodSpec, all but the last
    return is_one_of(name, {"dnsPolicy", "hostIPC", "hostNetwork", "hostPID", "hostname",
                            "nodeName", "priorityClassName", "restartPolicy", "schedulerName",
                            "serviceAccount", "serviceAccountName", "subdomain", "volumeName"});
  if (is_one_of(parent, {"containers", "initContainers"}))
    return is_one_of(name,
                     {"image", "imagePullPolicy", "stdin", "stdinOnce", "terminationMessagePath",
                      "terminationMessagePolicy", "tty", "workingDir"});
  if (is_one_of(parent, {"livenessProbe", "readinessProbe", "startupProbe"}))
    return is_one_of(name, {"failureThreshold", "initialDelaySeconds", "periodSeconds",
                            "successThreshold", "timeoutSeconds"});
  if (parent == "env") return name == "value";
  if (parent == "envFrom") return name == "prefix";
  if (parent == "ports") return is_one_of(name, {"hostIP", "hostPort", "name"});
  if (parent == "tolerations") return is_one_of(name, {"effect", "key", "operator", "value"});
  if (parent == "volumeMounts") return is_one_of(name, {"readOnly", "subPath", "subPathExpr"});
  if (parent == "fieldRef") return name == "apiVersion";
  if (parent == "resourceFieldRef") return name == "containerName";
  if (parent == "httpGet") return is_one_of(name, {"host", "path", "scheme"});
  if (parent == "tcpSocket") return name == "host";
  if (parent == "emptyDir") return name == "medium";
  // In csi and azureDisk they are pointers.
  return name == "readOnly" &&
         is_one_of(parent,
                   {"awsElasticBlockStore", "azureFile", "cephfs", "cinder", "fc", "flexVolume",
                    "gcePersistentDisk", "glusterfs", "iscsi", "nfs", "persistentVolumeClaim",
                    "portworxVolume", "rbd", "scaleIO", "storageos"});
}

bool is_omitted(std::string_view parent, std::string_view name, const Json& value) {
  if (value.is_null()) return true;
  // Required lists are written empty; without them a schema refuses the object.
  if (value.is_array())
    return value.empty() && !is_one_of(name, {"containers", "nodeSelectorTerms", "rules"});
  const bool is_zero = (value.is_string() && value.as_string().empty()) ||
                       (value.is_bool() && !value.as_bool()) ||
                       (value.is_int() && value.as_int() == 0);
  return is_zero && is_omitted_when_zero(parent, name);
}

void drop_omitted(Json& value, std::string_view parent) {
  if (value.is_array()) {
    for (Json& item : value.as_array()) drop_omitted(item, parent);
    return;
  }
  if (!value.is_object()) return;
  value.as_object().keep_if([parent](Json::Object::Member& member) {
    if (!is_string_map(member.first, member.second)) drop_omitted(member.second, member.first);
    return !is_omitted(parent, member.first, member.second);
  });
  // The divisor is a struct, which `omitempty` never omits. Clients that read no divisor write this
  // one.
  if (parent == "resourceFieldRef" && !value.find("divisor")) value.set("divisor", "0");
}

}  // namespace

const Json* find_container(const Json& pod_template, std::string_view name) {
  return find_named(pod_template, "containers", name);
}

const Json* find_any_container(const Json& pod_template, std::string_view name) {
  const Json* container = find_container(pod_template, name);
  return container ? container : find_named(pod_template, "initContainers", name);
}

Json* find_container(Json& pod_template, std::string_view name) {
  return const_cast<Json*>(find_container(std::as_const(pod_template), name));
}

Json* find_any_container(Json& pod_template, std::string_view name) {
  return const_cast<Json*>(find_any_container(std::as_const(pod_template), name));
}

const Json* find_env(const Json& container, std::string_view name) {
  const Json::Array& env = container.get_array("env");
  const auto found = std::find_if(env.begin(), env.end(), [name](const Json& variable) {
    return variable.get_string("name") == name;
  });
  return found == env.end() ? nullptr : &*found;
}

Json upsert_env(Json& container, Json env_var) {
  return upsert(container["env"], std::move(env_var), {"name"});
}

Json upsert_env(Json& container, std::string_view name, std::string_view value) {
  return upsert_env(container, Json::object({{"name", name}, {"value", value}}));
}

void upsert_env(Json& container, Json::Array env_vars) {
  constexpr std::size_t kFew = 8;
  if (env_vars.size() <= kFew) {
    for (Json& each : env_vars) upsert_env(container, std::move(each));
    return;
  }
  Json& list = container["env"];
  if (list.is_null()) list = Json::array();
  Json::Array& items = list.as_array();
  const auto name_of = [](const Json& item) {
    const Json* const name = item.find("name");
    return name ? print_json(*name) : std::string();
  };
  std::unordered_map<std::string, std::size_t> places;  // the place of the first of each name
  for (const Json& item : items) places.try_emplace(name_of(item), &item - items.data());
  for (Json& each : env_vars) {
    const auto [at, is_new] = places.try_emplace(name_of(each), items.size());
    if (is_new) {
      items.push_back(std::move(each));
    } else {
      items[at->second] = std::move(each);
    }
  }
}

Json upsert_port(Json& container, Json port) {
  return upsert(container["ports"], std::move(port), {"containerPort", "name"});
}

Json upsert_volume(Json& pod_template, Json volume) {
  return upsert(pod_template["spec"]["volumes"], std::move(volume), {"name"});
}

Json upsert_volume_mount(Json& container, Json mount) {
  return upsert(container["volumeMounts"], std::move(mount), {"mountPath"});
}

void add_labels(Json& pod_template, const StringMap& labels) {
  add_strings(pod_template, "labels", labels);
}

void add_annotations(Json& pod_template, const StringMap& annotations) {
  add_strings(pod_template, "annotations", annotations);
}

ResourceList read_resource_list(const Json::Object& amounts) {
  ResourceList list;
  for (const auto& [name, value] : amounts) {
    if (const auto quantity = Quantity::read(value)) list.emplace(name, *quantity);
  }
  return list;
}

ResourceList read_resources(const Json& container, std::string_view requests_or_limits) {
  return read_resource_list(container.get("resources").get_object(requests_or_limits));
}

ResourceList pod_requests(const Json& pod_template) {
  const Json& spec = pod_template.get("spec");
  ResourceList total;
  for (const Json& container : spec.get_array("containers"))
    add_to(total, container_requests(container));

  // While an init container runs, the sidecars before it run too. A sidecar also runs beside the
  // containers. The sidecars before a container have raised the amounts that it does not ask for.
  ResourceList sidecars;
  ResourceList most_while_starting;
  for (const Json& container : spec.get_array("initContainers")) {
    ResourceList running = container_requests(container);
    const bool is_sidecar = container.get_string("restartPolicy") == "Always";
    if (is_sidecar) add_to(total, running);
    for (auto& [name, amount] : running) {
      if (is_sidecar) {
        amount = sidecars[name] += amount;
      } else if (const auto beside = sidecars.find(name); beside != sidecars.end()) {
        amount += beside->second;
      }
    }
    raise_to(most_while_starting, running);
  }
  raise_to(total, most_while_starting);

  for (const auto& [name, amount] : read_resources(spec, "requests")) {
    if (is_pod_level(name)) total[name] = amount;
  }
  add_to(total, read_resource_list(spec.get_object("overhead")));
  return total;
}

void canonicalise_quantities(Json& value) {
  if (value.is_array()) {
    for (Json& item : value.as_array()) canonicalise_quantities(item);
    return;
  }
  if (!value.is_object()) return;
  for (auto& [name, member] : value.as_object()) {
    if (is_one_of(name, {"divisor", "sizeLimit"})) {
      canonicalise(member);
    } else if (member.is_object() &&
               is_one_of(name, {"capacity", "limits", "overhead", "requests"})) {
      for (auto& [resource, amount] : member.as_object()) canonicalise(amount);
    } else if (!is_string_map(name, member)) {
      canonicalise_quantities(member);
    }
  }
}

void write_as_go(Json& value) {
  canonicalise_quantities(value);
  drop_omitted(value, "");
}

std::int64_t termination_grace(const Json& pod) {
  return pod.get("spec").get_int("terminationGracePeriodSeconds", kDefaultGraceSeconds);
}

bool is_pod_over(const Json& pod) {
  const std::string_view phase = pod.get("status").get_string("phase");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace kube
