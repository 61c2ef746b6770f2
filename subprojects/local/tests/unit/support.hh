// Kinds of local mode, and objects from YAML.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "local/kinds/kinds.hh"

namespace trainer::test {

inline const kube::server::ServedKinds& kinds() {
  static const kube::server::ServedKinds all = trainer::local::all_kinds();
  return all;
}

inline const kube::server::ServedKind& kind_of(std::string_view name) {
  for (const auto& kind : kinds())
    if (kind.resource.kind == name) return kind;
  throw std::logic_error("no kind " + std::string(name));
}

inline kube::Json from_yaml(std::string_view text) {
  auto object = kube::parse_yaml(text);
  if (!object) throw std::logic_error(object.error().message);
  return *std::move(object);
}

// The object with its kind's defaults.
inline kube::Json defaulted(std::string_view kind, std::string_view yaml) {
  kube::Json object = from_yaml(yaml);
  kind_of(kind).set_defaults(object);
  return object;
}

// Returns the error in the types of an object that a client has sent.
inline std::string misfit(std::string_view kind, std::string_view yaml) {
  return kind_of(kind).decoding_problem(from_yaml(yaml));
}

// Returns why a create, or an update of `before`, is refused.
inline std::string refusal(std::string_view kind, const kube::Json& object,
                           const kube::Json* before = nullptr) {
  return kube::to_string(kind_of(kind).check(object, before));
}

}  // namespace trainer::test
