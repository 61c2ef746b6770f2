#include "kube/server/shown.hh"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace kube::server {
namespace {

// Takes the first name of a JSONPath such as ".spec.worker.replicas", which names one member.
std::string_view next_name(std::string_view& path) {
  if (!path.empty() && path.front() == '.') path.remove_prefix(1);
  const std::size_t end = std::min(path.find('.'), path.size());
  const std::string_view name = path.substr(0, end);
  path.remove_prefix(end);
  return name;
}

const Json& value_at(const Json& object, std::string_view path) {
  const Json* at = &object;
  while (!path.empty()) at = &at->get(next_name(path));
  return *at;
}

}  // namespace

Shown shown(const ServedKind& kind, const Json& object) {
  const std::string version = kind.resource.api_version();
  if (object.get_string("apiVersion") == version) return Shown(&object);
  Json copy = object;
  copy.set("apiVersion", version).set("kind", kind.resource.kind);
  return Shown(std::move(copy));
}

Json scale_of(const ServedKind& kind, const Json& object) {
  const Json& from = object.get("metadata");
  Json metadata = Json::object();
  for (const auto* name : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"})
    if (const Json* value = from.find(name)) metadata.set(name, *value);
  const auto number = [&object](std::string_view path) {
    const Json& value = value_at(object, path);
    return value.is_int() ? value.as_int() : 0;
  };
  Json status = Json::object({{"replicas", number(kind.scale->status_replicas)}});
  if (!kind.scale->label_selector.empty())
    if (const Json& selector = value_at(object, kind.scale->label_selector); selector.is_string())
      status.set("selector", selector);
  Json scale = Json::object({{"kind", "Scale"}, {"apiVersion", "autoscaling/v1"}});
  scale.set("metadata", std::move(metadata));
  scale.set("spec", Json::object({{"replicas", number(kind.scale->spec_replicas)}}));
  scale.set("status", std::move(status));
  return scale;
}

bool set_replicas(const ServedKind& kind, Json& object, std::int64_t replicas) {
  std::string_view path = kind.scale->spec_replicas;
  Json* at = &object;
  while (!path.empty()) {
    if (!at->is_object() && !at->is_null()) return false;
    at = &(*at)[next_name(path)];
  }
  *at = replicas;
  return true;
}

}  // namespace kube::server
