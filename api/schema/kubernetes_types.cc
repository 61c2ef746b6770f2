#include "api/schema/kubernetes_types.hh"

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "kube/model/json_text.hh"

namespace trainer {

extern const std::string_view kKubernetesTypes;  // a part of kubernetes.json
extern const std::string_view kKubernetesDescriptions;

namespace {

void describe(kube::Json& type, std::string_view name, const kube::Json& descriptions) {
  kube::Json* properties = type.find("properties");
  if (properties == nullptr) return;
  for (auto& [member, schema] : properties->as_object()) {
    const kube::Json* sentence = descriptions.find_path({name, member});
    if (sentence == nullptr) sentence = descriptions.find_path({"*", member});
    if (sentence != nullptr) schema.set("description", *sentence);
  }
}

}  // namespace

kube::Json read_kubernetes_types() {
  auto types = kube::parse_json(kKubernetesTypes);
  if (!types) throw std::logic_error("the types of Kubernetes: " + types.error().message);
  return *std::move(types);
}

kube::Json read_kubernetes_descriptions() {
  auto descriptions = kube::parse_json(kKubernetesDescriptions);
  if (!descriptions)
    throw std::logic_error("api/schema/descriptions.json: " + descriptions.error().message);
  return *std::move(descriptions);
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

kube::Json KubernetesTypes::expand(const kube::Json& schema, const kube::Json& descriptions) const {
  kube::Json out;
  if (const kube::Json* target = target_of(schema)) {
    out = expand(*target, descriptions);
    describe(out, schema.get_string("$ref").substr(2), descriptions);
    for (const auto& [name, value] : schema.as_object())
      if (name != "$ref") out.set(name, value);
    return out;
  }
  out = schema;
  if (kube::Json* properties = out.find("properties"))
    for (auto& [name, property] : properties->as_object())
      property = expand(property, descriptions);
  for (const char* inner : {"items", "additionalProperties"})
    if (kube::Json* found = out.find(inner)) *found = expand(*found, descriptions);
  return out;
}

}  // namespace trainer
