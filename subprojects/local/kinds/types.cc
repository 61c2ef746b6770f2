#include "local/kinds/types.hh"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "api/describe/patterns.hh"
#include "api/schema/structural_schema.hh"
#include "kube/model/json_text.hh"
#include "kube/server/decoding.hh"

namespace trainer::local {

extern const std::string_view kBuiltinTypes;  // a part of kubernetes.json

namespace {

Json read_types() {
  auto data = kube::parse_json(kBuiltinTypes);
  if (!data) throw std::logic_error("the kinds of Kubernetes: " + data.error().message);
  return *std::move(data);
}

void drop_required(Json& schema) {
  schema.erase("required");
  if (Json* properties = schema.find("properties"))
    for (auto& [name, property] : properties->as_object()) drop_required(property);
  for (const char* inner : {"items", "additionalProperties"})
    if (Json* found = schema.find(inner)) drop_required(*found);
}

// The rule is apiextensions-apiserver's, pkg/registry/customresource/strategy.go hasBlockingErr.
bool hides_rules(const kube::FieldError& error) {
  using Type = kube::FieldError::Type;
  return error.type == Type::kNotSupported || error.type == Type::kRequired ||
         error.type == Type::kTooLong || error.type == Type::kTooMany ||
         error.type == Type::kTypeInvalid;
}

}  // namespace

BuiltinTypes::BuiltinTypes() : data_(read_types()), types_(std::move(data_["types"])) {}

SharedSchema BuiltinTypes::schema(std::string_view kind) const {
  auto schema = std::make_shared<wire::Schema>();
  schema->document = types_.expand(Json::object({{"$ref", "#/" + std::string(kind)}}));
  if (Json* status = schema->document.find_path({"properties", "status"})) drop_required(*status);
  schema->predicates.rules.emplace(wire::kQuantity.regex, [](const Json& self) {
    return wire::kQuantity.matches(self.as_string());
  });
  return schema;
}

std::string BuiltinTypes::decoding_problem(const kube::Resource& resource,
                                           const Json& object) const {
  const kube::server::GoTypes types{[this](const Json& part) { return types_.target_of(part); },
                                    resource.version};
  return kube::server::decoding_problem(object, Json::object({{"$ref", "#/" + resource.kind}}),
                                        types);
}

std::shared_ptr<const kube::MergeKeys> BuiltinTypes::merge_keys(std::string_view kind) const {
  std::map<std::string, std::string, std::less<>> keys{{"metadata.ownerReferences", "uid"}};
  for (const auto& [path, key] : data_.get("mergeKeys").get_object(kind))
    keys.emplace(path, key.as_string());
  return std::make_shared<kube::MergeKeys>(std::move(keys));
}

void use_schema(ServedKind& kind, SharedSchema schema, Rules rules) {
  kind.schema = std::shared_ptr<const Json>(schema, &schema->document);
  kind.set_defaults = [schema, rules](Json& object) {
    apply_schema_defaults(object, *schema);
    if (rules.set_defaults != nullptr) rules.set_defaults(object);
  };
  kind.check = [schema, rules](const Json& object, const Json* before) {
    FieldErrors errors = check_schema(object, *schema, before);
    if (rules.may_repeat)
      std::erase_if(errors, [](const kube::FieldError& error) {
        return error.type == kube::FieldError::Type::kDuplicate;
      });
    else if (!schema->predicates.rules.empty() && std::ranges::any_of(errors, hides_rules))
      errors.push_back(kube::invalid(
          "", Json(),
          "some validation rules were not checked because the object was invalid; correct the "
          "existing errors to complete validation"));
    // Rules run on an object whose members have the right types, like in the API server.
    if (errors.empty() && before != nullptr) errors = check_transitions(object, *before, *schema);
    if (errors.empty() && rules.check != nullptr) errors = rules.check(object, before);
    return errors;
  };
  kind.unknown_fields = [schema](const Json& object) { return unknown_fields(object, *schema); };
}

void set_default(Json& object, std::string_view name, Json value) {
  Json& member = object[name];
  if (member.is_null()) member = std::move(value);
}

void check_immutable(const Json& after, const Json& before, std::string_view path,
                     std::initializer_list<std::string_view> names, FieldErrors& errors) {
  for (const std::string_view name : names)
    if (after.get(name) != before.get(name))
      errors.push_back(
          kube::invalid(kube::join_field(path, name), after.get(name), "field is immutable"));
}

}  // namespace trainer::local
