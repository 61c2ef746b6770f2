// Some rules compare an object with the stored one. They are evaluated like in
// apiextensions-apiserver.
#include <algorithm>
#include <string>
#include <string_view>

#include "api/describe/path.hh"
#include "api/schema/schema_view.hh"
#include "api/schema/stored_part.hh"
#include "api/schema/structural_schema.hh"
#include "kube/model/time.hh"

namespace trainer {
namespace {

using kube::FieldErrors;
using kube::Json;
using wire::FieldPath;

bool is_equal(const Json& value, const Json& before, const Json& schema);

bool is_equal_list(const Json& value, const Json& before, const SchemaView& view) {
  const std::string_view type = view.text("x-kubernetes-list-type");
  const Json::Array& items = value.as_array();
  const Json::Array& others = before.as_array();
  if (items.size() != others.size()) return false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Json* other = type == "map" ? stored_item(&before, items, i, view) : &others[i];
    if (type == "set") {
      const auto at = std::find(others.begin(), others.end(), items[i]);
      other = at == others.end() ? nullptr : &*at;
    }
    if (other == nullptr || !is_equal(items[i], *other, *view.find("items"))) return false;
  }
  return true;
}

// Compares like CEL: lists that are maps or sets have no order, and times are instants
// (k8s.io/apiserver, pkg/cel/common/valuesunstructured.go).
bool is_equal(const Json& value, const Json& before, const Json& schema) {
  if (value == before) return true;
  const SchemaView view(schema);
  if (value.is_array() && before.is_array() && view.find("items") != nullptr)
    return is_equal_list(value, before, view);
  if (value.is_string() && before.is_string() && view.text("format") == "date-time")
    return kube::Time::parse(value.as_string()) == kube::Time::parse(before.as_string());
  if (!value.is_object() || !before.is_object() || value.size() != before.size()) return false;
  for (const auto& [name, member] : value.as_object()) {
    const Json* other = before.find(name);
    const Json* below = view.member(name);
    // The stored object may lack an undeclared member.
    if (below == nullptr ? other != nullptr && member != *other
                         : other == nullptr || !is_equal(member, *other, *below))
      return false;
  }
  return true;
}

using Transitions = decltype(wire::Predicates::transitions);

bool holds(std::string_view rule, const Json& value, const Json& before, const Json& schema,
           const Transitions& known) {
  if (rule == "self == oldSelf") return is_equal(value, before, schema);
  const auto at = known.find(rule);
  if (at == known.end()) return true;
  return at->second(value, before, [&](std::initializer_list<std::string_view> path) {
    const Json* const member = value.find_path(path);
    const Json* const stored = before.find_path(path);
    if (member == nullptr || stored == nullptr) return member == stored;
    const Json* below = &schema;
    for (const std::string_view name : path) below = SchemaView(*below).member(name);
    return is_equal(*member, *stored, *below);
  });
}

void check(const Json& value, const Json& before, const Json& schema, const FieldPath& path,
           const Transitions& known, FieldErrors& errors);

void check_items(const Json& value, const Json& before, const SchemaView& view,
                 const FieldPath& path, const Transitions& known, FieldErrors& errors) {
  const Json* items = view.find("items");
  if (items == nullptr) return;
  for (std::size_t i = 0; i < value.as_array().size(); ++i) {
    if (const Json* same = stored_item(&before, value.as_array(), i, view))
      check(value.as_array()[i], *same, *items, FieldPath(path, i), known, errors);
  }
}

// Returns the path that a refusal of the rule names.
std::string refused_path(const Json& rule, const FieldPath& path) {
  std::string_view member = rule.get_string("fieldPath");
  const std::string at = path.to_string();
  if (at.empty() && member.starts_with('.')) member.remove_prefix(1);
  return at + std::string(member);
}

void check(const Json& value, const Json& before, const Json& schema, const FieldPath& path,
           const Transitions& known, FieldErrors& errors) {
  const SchemaView view(schema);
  for (const Json& rule : view.list("x-kubernetes-validations"))
    if (!holds(rule.get_string("rule"), value, before, schema, known))
      errors.push_back(
          kube::invalid(refused_path(rule, path), value, std::string(rule.get_string("message"))));
  if (value.is_array()) check_items(value, before, view, path, known, errors);
  if (!value.is_object()) return;
  for (const auto& [name, member] : value.as_object()) {
    const Json* old_member = before.find(name);
    const Json* below = old_member == nullptr ? nullptr : view.member(name);
    if (below != nullptr) check(member, *old_member, *below, FieldPath(path, name), known, errors);
  }
}

}  // namespace

FieldErrors check_transitions(const Json& object, const Json& before, const wire::Schema& schema) {
  FieldErrors errors;
  check(object, before, schema.document, FieldPath(""), schema.predicates.transitions, errors);
  return errors;
}

}  // namespace trainer
