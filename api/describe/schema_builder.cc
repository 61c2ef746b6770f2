#include "api/describe/schema_builder.hh"

namespace trainer::wire {

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

Self SchemaAttributes::rule(const Rule& rule) const {
  kube::Json entry = kube::Json::object({{"rule", rule.rule}, {"message", rule.message}});
  if (!rule.path.empty()) {
    entry.set("fieldPath", "." + std::string(rule.path));
    entry.set("reason", "FieldValueForbidden");
  }
  schema_["x-kubernetes-validations"].push_back(std::move(entry));
  return *this;
}

Self SchemaAttributes::item_min_length(std::int64_t value) const {
  schema_["items"].set("minLength", value);
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

// metav1.Condition with the bounds that Kubernetes gives it.
kube::Json condition_schema() {
  using kube::Json;
  const Json type =
      scalar_schema("string")
          .set("maxLength", 316)
          .set("pattern", R"(^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?)"
                          R"((([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$)");
  const Json status =
      scalar_schema("string").set("enum", Json::array({"True", "False", "Unknown"}));
  const Json reason = scalar_schema("string")
                          .set("minLength", 1)
                          .set("maxLength", 1024)
                          .set("pattern", "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$");
  const Json properties = Json::object({
      {"type", type},
      {"status", status},
      {"reason", reason},
      {"message", scalar_schema("string").set("maxLength", 32768)},
      {"lastTransitionTime", scalar_schema("string", "date-time")},
      {"observedGeneration", scalar_schema("integer", "int64").set("minimum", 0)},
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
    case Removed::kIntOrString:
      return kube::Json::object({{"x-kubernetes-int-or-string", true}});
  }
  return anything;
}

}  // namespace trainer::wire
