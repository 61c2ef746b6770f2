#include "api/describe/schema_builder.hh"

namespace trainer::wire {

namespace {

void add(const Pattern& pattern, Predicates& predicates) {
  predicates.rules.emplace(pattern.regex, [matches = pattern.matches](const kube::Json& self) {
    return matches(self.as_string());
  });
}

}  // namespace

using Self = const SchemaAttributes&;

Self SchemaAttributes::set(std::string_view name, kube::Json value) const {
  schema_.set(name, std::move(value));
  return *this;
}

Self SchemaAttributes::one_of(std::initializer_list<std::string_view> values) const {
  kube::Json::Array names;
  for (const std::string_view value : values) names.emplace_back(value);
  return set("enum", std::move(names));
}

Self SchemaAttributes::pattern(const Pattern& pattern) const {
  add(pattern, predicates_);
  return set("pattern", pattern.regex);
}

Self SchemaAttributes::rule(const Rule& rule) const {
  if (rule.holds != nullptr) predicates_.rules.emplace(rule.cel, rule.holds);
  if (rule.keeps != nullptr) predicates_.transitions.emplace(rule.cel, rule.keeps);
  kube::Json stated = kube::Json::object({{"rule", rule.cel}, {"message", rule.message}});
  if (!rule.field_path.empty()) stated.set("fieldPath", rule.field_path);
  schema_["x-kubernetes-validations"].push_back(std::move(stated));
  return *this;
}

Self SchemaAttributes::forbidden(std::string_view member, std::string_view message) const {
  const std::string name(member);
  // A stored object that has the member is not refused for it: Kubernetes 1.31 runs the rules of
  // the spec, whatever has changed, also when a status is written.
  const std::string cel = "!has(self." + name + ") || oldSelf.?" + name + ".hasValue()";
  predicates_.rules.emplace(cel,
                            [name](const kube::Json& self) { return self.find(name) == nullptr; });
  schema_["x-kubernetes-validations"].push_back(
      kube::Json::object({{"rule", cel},
                          {"optionalOldSelf", true},
                          {"message", message},
                          {"fieldPath", "." + name},
                          {"reason", "FieldValueForbidden"}}));
  return *this;
}

Self SchemaAttributes::item_max_length(std::int64_t value) const {
  schema_["items"].set("maxLength", value);
  return *this;
}

Self SchemaAttributes::list_map(std::string_view key) const {
  set("x-kubernetes-list-type", "map");
  return set("x-kubernetes-list-map-keys", kube::Json::array({key}));
}

Self SchemaAttributes::kubernetes(std::string_view type) const {
  add(kQuantity, predicates_);  // many of the types hold quantities
  const kube::Json reference = kube::Json::object({{"$ref", "#/" + std::string(type)}});
  if (schema_.get_string("type") == "array") return set("items", reference);
  schema_ = reference;
  return *this;
}

kube::Json scalar_schema(std::string_view type, std::string_view format) {
  kube::Json schema = kube::Json::object({{"type", type}});
  if (!format.empty()) schema.set("format", format);
  return schema;
}

kube::Json object_schema() {
  return scalar_schema("object");
}

kube::Json string_map_schema() {
  return object_schema().set("additionalProperties", scalar_schema("string"));
}

kube::Json list_schema(kube::Json items) {
  return scalar_schema("array").set("items", std::move(items));
}

// Returns the schema of metav1.Condition with the bounds that Kubernetes sets.
kube::Json condition_schema(Predicates& predicates) {
  using kube::Json;
  const auto described = [](Json schema, const char* text) {
    return schema.set("description", text);
  };
  Json type = described(scalar_schema("string").set("maxLength", 316), "What it is about.");
  SchemaAttributes(type, predicates).pattern(kConditionType);
  Json reason = described(scalar_schema("string").set("minLength", 1).set("maxLength", 1024),
                          "Why, in one word.");
  SchemaAttributes(reason, predicates).pattern(kConditionReason);
  const Json status =
      described(scalar_schema("string").set("enum", Json::array({"True", "False", "Unknown"})),
                "Whether it holds.");
  const Json properties = Json::object({
      {"type", type},
      {"status", status},
      {"reason", reason},
      {"message", described(scalar_schema("string").set("maxLength", 32768), "Why, for people.")},
      {"lastTransitionTime",
       described(scalar_schema("string", "date-time"), "When the status last changed.")},
      {"observedGeneration", described(scalar_schema("integer", "int64").set("minimum", 0),
                                       "The metadata.generation that was looked at.")},
  });
  const Json required = Json::array({"lastTransitionTime", "message", "reason", "status", "type"});
  return object_schema().set("properties", properties).set("required", required);
}

kube::Json removed_schema(Removed type) {
  const kube::Json anything = object_schema().set("x-kubernetes-preserve-unknown-fields", true);
  switch (type) {
    case Removed::kObject:
      return anything;
    case Removed::kObjects:
      return list_schema(anything);
    case Removed::kStrings:
      return string_map_schema();
  }
  return anything;
}

}  // namespace trainer::wire
