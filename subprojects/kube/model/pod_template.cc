#include "kube/model/pod_template.hh"

#include <algorithm>
#include <utility>

namespace kube {
namespace {

const Json* find_named(const Json& pod_template, std::string_view list, std::string_view name) {
  const Json* spec = pod_template.find("spec");
  if (!spec) return nullptr;
  for (const Json& container : spec->get_array(list)) {
    const Json* own = container.find("name");
    if (own && own->is_string() && own->as_string() == name) return &container;
  }
  return nullptr;
}

// Replaces the first item for which `is_same` holds, else appends.
template <class IsSame>
void upsert(Json& list, Json item, IsSame is_same) {
  if (list.is_null()) list = Json::array();
  Json::Array& items = list.as_array();
  const auto at = std::find_if(items.begin(), items.end(), is_same);
  if (at != items.end()) {
    *at = std::move(item);
  } else {
    items.push_back(std::move(item));
  }
}

// Whether both have the member with the same value, or both lack it.
bool same_member(const Json& a, const Json& b, std::string_view name) {
  const Json* in_a = a.find(name);
  const Json* in_b = b.find(name);
  return in_a && in_b ? *in_a == *in_b : in_a == in_b;
}

void upsert_by(Json& list, Json item, std::string_view key) {
  const Json copy = item;
  upsert(list, std::move(item), [&](const Json& other) { return same_member(other, copy, key); });
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

ResourceList read_amounts(const Json* amounts) {
  ResourceList list;
  if (!amounts || !amounts->is_object()) return list;
  for (const auto& [name, value] : amounts->as_object()) {
    if (const auto quantity = Quantity::read(value)) list.emplace(name, *quantity);
  }
  return list;
}

ResourceList container_requests(const Json& container, bool limits_default_requests) {
  ResourceList requests = read_resources(container, "requests");
  if (limits_default_requests) requests.merge(read_resources(container, "limits"));
  return requests;
}

bool is_pod_level(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource.substr(0, 10) == "hugepages-";
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

void upsert_env(Json& container, Json env_var) {
  upsert_by(container["env"], std::move(env_var), "name");
}

void upsert_env(Json& container, std::string_view name, std::string_view value) {
  upsert_env(container, Json::object({{"name", name}, {"value", value}}));
}

void upsert_port(Json& container, Json port) {
  const Json copy = port;
  upsert(container["ports"], std::move(port), [&](const Json& other) {
    return same_member(other, copy, "containerPort") || same_member(other, copy, "name");
  });
}

void upsert_volume(Json& pod_template, Json volume) {
  upsert_by(pod_template["spec"]["volumes"], std::move(volume), "name");
}

void upsert_volume_mount(Json& container, Json mount) {
  upsert_by(container["volumeMounts"], std::move(mount), "mountPath");
}

void add_labels(Json& pod_template, const StringMap& labels) {
  add_strings(pod_template, "labels", labels);
}

void add_annotations(Json& pod_template, const StringMap& annotations) {
  add_strings(pod_template, "annotations", annotations);
}

ResourceList read_resources(const Json& container, std::string_view requests_or_limits) {
  return read_amounts(container.find_path({"resources", requests_or_limits}));
}

ResourceList pod_requests(const Json& pod_template, bool limits_default_requests) {
  ResourceList total;
  const Json* spec = pod_template.find("spec");
  if (!spec) return total;
  for (const Json& container : spec->get_array("containers"))
    add_to(total, container_requests(container, limits_default_requests));

  // While an init container runs, the sidecars before it run too; a sidecar also runs beside the
  // containers.
  ResourceList sidecars;
  ResourceList most_while_starting;
  for (const Json& container : spec->get_array("initContainers")) {
    ResourceList running = container_requests(container, limits_default_requests);
    if (container.get_string("restartPolicy") == "Always") {
      add_to(total, running);
      add_to(sidecars, running);
      raise_to(most_while_starting, sidecars);
    } else {
      add_to(running, sidecars);
      raise_to(most_while_starting, running);
    }
  }
  raise_to(total, most_while_starting);

  for (const auto& [name, amount] : read_resources(*spec, "requests")) {
    if (is_pod_level(name)) total[name] = amount;
  }
  add_to(total, read_amounts(spec->find("overhead")));
  return total;
}

}  // namespace kube
