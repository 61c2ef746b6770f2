// CustomResourceDefinitions have these rules: each member of their schemas must have the type that
// readers of schemas rely on (apiextensions.k8s.io/v1 JSONSchemaProps).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "local/kinds/kinds.hh"

namespace trainer::local {
namespace {

enum class Type {
  kText,
  kInteger,
  kNumber,
  kBoolean,
  kList,
  kTexts,
  kSchema,
  kSchemas,
  kMap,
  kAny
};

constexpr std::array<std::pair<std::string_view, Type>, 30> kMembers{
    {{"type", Type::kText},
     {"pattern", Type::kText},
     {"format", Type::kText},
     {"title", Type::kText},
     {"description", Type::kText},
     {"x-kubernetes-list-type", Type::kText},
     {"x-kubernetes-map-type", Type::kText},
     {"minLength", Type::kInteger},
     {"maxLength", Type::kInteger},
     {"minItems", Type::kInteger},
     {"maxItems", Type::kInteger},
     {"minProperties", Type::kInteger},
     {"maxProperties", Type::kInteger},
     {"minimum", Type::kNumber},
     {"maximum", Type::kNumber},
     {"nullable", Type::kBoolean},
     {"uniqueItems", Type::kBoolean},
     {"x-kubernetes-preserve-unknown-fields", Type::kBoolean},
     {"x-kubernetes-int-or-string", Type::kBoolean},
     {"x-kubernetes-embedded-resource", Type::kBoolean},
     {"enum", Type::kList},
     {"required", Type::kTexts},
     {"x-kubernetes-list-map-keys", Type::kTexts},
     {"items", Type::kSchema},
     {"not", Type::kSchema},
     {"additionalProperties", Type::kAny},  // a boolean or a schema
     {"properties", Type::kMap},
     {"allOf", Type::kSchemas},
     {"anyOf", Type::kSchemas},
     {"oneOf", Type::kSchemas}}};

bool has_type(const Json& value, Type type) {
  switch (type) {
    case Type::kText:
      return value.is_string();
    case Type::kInteger:
      return value.is_int() && value.as_int() >= 0;
    case Type::kNumber:
      return value.is_int() || value.is_double();
    case Type::kBoolean:
      return value.is_bool();
    case Type::kTexts:
      return value.is_array() && std::ranges::all_of(value.as_array(), &Json::is_string);
    case Type::kList:
    case Type::kSchemas:
      return value.is_array();
    case Type::kSchema:
    case Type::kMap:
      return value.is_object();
    case Type::kAny:
      return value.is_bool() || value.is_object();
  }
  return false;
}

void check_schema_types(const Json& schema, const std::string& path, FieldErrors& errors) {
  constexpr std::size_t kMaxErrors = 20;
  if (errors.size() >= kMaxErrors) return;
  if (!schema.is_object()) {
    errors.push_back(kube::invalid(path, schema.type_name(), std::string("must be a schema")));
    return;
  }
  for (const auto& [name, type] : kMembers) {
    const Json* value = schema.find(name);
    if (value == nullptr || value->is_null()) continue;
    const std::string below = kube::join_field(path, name);
    if (!has_type(*value, type)) {
      errors.push_back(kube::invalid(below, value->type_name(),
                                     std::string("is not of the type that JSONSchemaProps has")));
    } else if (type == Type::kSchema || (type == Type::kAny && value->is_object())) {
      check_schema_types(*value, below, errors);
    } else if (type == Type::kSchemas) {
      for (std::size_t i = 0; i < value->size(); ++i)
        check_schema_types(value->as_array()[i], kube::join_index(below, i), errors);
    } else if (type == Type::kMap) {
      for (const auto& [key, property] : value->as_object())
        check_schema_types(property, fmt::format("{}[{}]", below, key), errors);
    }
  }
}

}  // namespace

FieldErrors check_definition(const Json& crd, const Json*) {
  FieldErrors errors;
  const Json::Array& versions = crd.get("spec").get_array("versions");
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const Json* schema = versions[i].get("schema").find("openAPIV3Schema");
    if (schema != nullptr && !schema->is_null())
      check_schema_types(*schema, kube::join_index("spec.versions", i) + ".schema.openAPIV3Schema",
                         errors);
  }
  return errors;
}

}  // namespace trainer::local
