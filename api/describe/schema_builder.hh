// A described struct becomes an OpenAPI v3 schema, in the form of a CustomResourceDefinition.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/describe/attributes.hh"
#include "api/int_or_string.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer::wire {

// These are the C++ counterparts of CEL rules and patterns, by their text.
struct Predicates {
  std::map<std::string, std::function<bool(const kube::Json& self)>, std::less<>> rules;
  // The same for rules that compare with the stored value.
  std::map<std::string, decltype(Rule::keeps), std::less<>> transitions;
};

// This is a schema in the form of a CustomResourceDefinition, and the predicates with which
// check_schema() needs no API server.
struct Schema {
  kube::Json document;  // with references to the types of kubernetes.json
  Predicates predicates;
};

template <class T>
kube::Json schema_of(Predicates& predicates);

// describe() adds this to the schema of one field, or of the struct itself. It is valid for the
// expression in which it is made.
class SchemaAttributes {
 public:
  using Self = const SchemaAttributes&;
  SchemaAttributes(kube::Json& schema, Predicates& predicates)
      : schema_(schema), predicates_(predicates) {}

  Self doc(std::string_view text) const { return set("description", text); }
  Self minimum(std::int64_t value) const { return set("minimum", value); }
  Self maximum(std::int64_t value) const { return set("maximum", value); }
  Self min_length(std::int64_t value) const { return set("minLength", value); }
  Self max_length(std::int64_t value) const { return set("maxLength", value); }
  Self pattern(const Pattern& pattern) const;
  Self one_of(std::initializer_list<std::string_view> values) const;
  template <class Value>
  Self defaults_to(const Value& value) const {
    return set("default", kube::Json(value));
  }
  Self rule(const Rule& rule) const;
  // Adds the rule that a member is absent, or was stored before. Its refusal names the member.
  Self forbidden(std::string_view member, std::string_view message) const;
  // Adds the rule that a value may not change once it exists. The rule does not run when the field
  // is added or removed.
  Self immutable(std::string_view message) const { return rule({"self == oldSelf", message}); }
  Self min_items(std::int64_t value) const { return set("minItems", value); }
  Self max_items(std::int64_t value) const { return set("maxItems", value); }
  Self item_max_length(std::int64_t value) const;
  // Says how server-side apply merges the list: by a key member, as a set of scalars, or as one
  // value.
  Self list_map(std::string_view key) const;
  Self list_set() const { return set("x-kubernetes-list-type", "set"); }
  Self list_atomic() const { return set("x-kubernetes-list-type", "atomic"); }
  Self map_atomic() const { return set("x-kubernetes-map-type", "atomic"); }
  Self min_properties(std::int64_t value) const { return set("minProperties", value); }
  // The Json value (of a list: every item) has this type of kubernetes.json.
  Self kubernetes(std::string_view type) const;
  // The Json value has the schema of a struct that is described but never filled.
  template <class Shape>
  Self shape() const {
    schema_ = schema_of<Shape>(predicates_);
    return *this;
  }

 private:
  Self set(std::string_view name, kube::Json value) const;

  kube::Json& schema_;
  Predicates& predicates_;
};

// These are schemas of types other than described structs.
kube::Json scalar_schema(std::string_view type, std::string_view format = {});
kube::Json object_schema();
kube::Json string_map_schema();
kube::Json list_schema(kube::Json items);
kube::Json condition_schema(Predicates& predicates);
kube::Json removed_schema(Removed type);

template <class T>
struct SchemaOf;  // members: static kube::Json make(Predicates&)

// This is the visitor: it collects properties and required members. All visitors (Reader, Writer,
// Fitter) have these members: field(), a member that is left out if it is empty; required(), one
// that must exist; always(), one that is optional, but is written also if it is empty; derived(),
// one that is computed by a function of the struct; removed(); and self(), the struct itself.
template <class T>
class SchemaBuilder {
 public:
  explicit SchemaBuilder(Predicates& predicates) : predicates_(predicates) {}

  template <class Member, class Owner>
  SchemaAttributes field(std::string_view name, Member Owner::*) {
    return add(name, schema_of<Member>(predicates_));
  }
  template <class Member, class Owner>
  SchemaAttributes required(std::string_view name, Member Owner::*) {
    required_.push_back(name);
    return add(name, schema_of<Member>(predicates_));
  }
  template <class Member, class Owner>
  SchemaAttributes always(std::string_view name, Member Owner::*) {
    return add(name, schema_of<Member>(predicates_));
  }
  template <class Member, class Owner>
  SchemaAttributes derived(std::string_view name, Member (Owner::*)() const) {
    return add(name, schema_of<Member>(predicates_));
  }
  // The member is declared, so that the API server does not prune it before admission has seen it.
  // If it still exists after admission the object is refused, so it is never stored.
  void removed(std::string_view name, Removed type, std::string_view advice) {
    add(name, removed_schema(type)).doc("Refused: it " + std::string(advice) + ".");
    self().forbidden(name, advice);
  }
  SchemaAttributes self() { return SchemaAttributes(self_, predicates_); }

  // Call this once, after describe().
  kube::Json take() {
    self_.set("type", "object");
    kube::Json::Object properties;
    for (auto& [name, schema] : properties_) properties[name] = std::move(schema);
    if (!properties.empty()) self_.set("properties", std::move(properties));
    kube::Json::Array required;
    for (const std::string_view name : required_) required.emplace_back(name);
    if (!required.empty()) self_.set("required", std::move(required));
    return std::move(self_);
  }

 private:
  SchemaAttributes add(std::string_view name, kube::Json schema) {
    return SchemaAttributes(properties_[std::string(name)] = std::move(schema), predicates_);
  }

  Predicates& predicates_;
  // It is a map, since attributes refer to a schema in it, and insertion must not move that.
  std::map<std::string, kube::Json> properties_;
  std::vector<std::string_view> required_;
  kube::Json self_;
};

template <class T>
struct SchemaOf {
  static kube::Json make(Predicates& predicates) {
    SchemaBuilder<T> builder(predicates);
    T::describe(builder);
    return builder.take();
  }
};
template <>
struct SchemaOf<std::string> {
  static kube::Json make(Predicates&) { return scalar_schema("string"); }
};
template <>
struct SchemaOf<bool> {
  static kube::Json make(Predicates&) { return scalar_schema("boolean"); }
};
template <>
struct SchemaOf<std::int32_t> {
  static kube::Json make(Predicates&) { return scalar_schema("integer", "int32"); }
};
template <>
struct SchemaOf<std::int64_t> {
  static kube::Json make(Predicates&) { return scalar_schema("integer", "int64"); }
};
template <>
struct SchemaOf<IntOrString> {
  static kube::Json make(Predicates&) {
    return kube::Json::object({{"x-kubernetes-int-or-string", true}});
  }
};
template <>
struct SchemaOf<kube::Time> {
  static kube::Json make(Predicates&) { return scalar_schema("string", "date-time"); }
};
template <>
struct SchemaOf<kube::Json> {
  static kube::Json make(Predicates&) { return object_schema(); }
};
template <>
struct SchemaOf<kube::ObjectMeta> {
  static kube::Json make(Predicates&) { return object_schema(); }
};
template <>
struct SchemaOf<kube::StringMap> {
  static kube::Json make(Predicates&) { return string_map_schema(); }
};
template <>
struct SchemaOf<kube::Condition> {
  static kube::Json make(Predicates& predicates) { return condition_schema(predicates); }
};
template <class T>
struct SchemaOf<std::optional<T>> {
  static kube::Json make(Predicates& predicates) { return schema_of<T>(predicates); }
};
template <class T>
struct SchemaOf<std::vector<T>> {
  static kube::Json make(Predicates& predicates) { return list_schema(schema_of<T>(predicates)); }
};

template <class T>
struct SchemaOf<std::map<std::string, T, std::less<>>> {
  static kube::Json make(Predicates& predicates) {
    return object_schema().set("additionalProperties", schema_of<T>(predicates));
  }
};

template <class T>
kube::Json schema_of(Predicates& predicates) {
  return SchemaOf<T>::make(predicates);
}

}  // namespace trainer::wire
