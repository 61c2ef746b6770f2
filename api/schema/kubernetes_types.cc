#include "api/schema/kubernetes_types.hh"

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "kube/model/json_text.hh"

namespace trainer {

extern const std::string_view kKubernetesTypes;  // embedded by the build

kube::Json read_kubernetes_types() {
  auto types = kube::parse_json(kKubernetesTypes);
  if (!types) throw std::logic_error("api/schema/kubernetes.json: " + types.error().message);
  return *std::move(types);
}

KubernetesTypes::KubernetesTypes() : types_(std::move(read_kubernetes_types()["types"])) {}

const KubernetesTypes& KubernetesTypes::instance() {
  static const KubernetesTypes types;
  return types;
}

const kube::Json* KubernetesTypes::target_of(const kube::Json& schema) const {
  const std::string_view reference = schema.get_string("$ref");
  if (reference.empty()) return nullptr;
  const kube::Json* target = types_.find(reference.substr(2));  // "#/NAME"
  if (target == nullptr)
    throw std::logic_error("the types of Kubernetes lack " + std::string(reference));
  return target;
}

kube::Json KubernetesTypes::expand(const kube::Json& schema) const {
  kube::Json out;
  if (const kube::Json* target = target_of(schema)) {
    out = expand(*target);
    for (const auto& [name, value] : schema.as_object())
      if (name != "$ref") out.set(name, value);
    return out;
  }
  out = schema;
  if (kube::Json* properties = out.find("properties"))
    for (auto& [name, property] : properties->as_object()) property = expand(property);
  for (const char* inner : {"items", "additionalProperties"})
    if (kube::Json* found = out.find(inner)) *found = expand(*found);
  return out;
}

}  // namespace trainer
