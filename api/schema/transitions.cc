// Rules that compare an object with the stored one, as apiextensions-apiserver evaluates them
// (pkg/apiserver/schema/cel): values correspond by the names of members, and items by the keys of a
// list map.
#include <string>
#include <string_view>

#include "api/describe/path.hh"
#include "api/schema/schema_view.hh"
#include "api/schema/structural_schema.hh"

namespace trainer {
namespace {

using kube::FieldErrors;
using kube::Json;
using wire::FieldPath;

// `has(self.NAME) == has(oldSelf.NAME)`: NAME, or "" for any other rule.
std::string_view member_that_stays(std::string_view rule) {
  constexpr std::string_view kFront = "has(self.", kMiddle = ") == has(oldSelf.";
  if (!rule.starts_with(kFront) || !rule.ends_with(')')) return {};
  rule.remove_prefix(kFront.size());
  rule.remove_suffix(1);
  const std::size_t end = rule.find(kMiddle);
  if (end == rule.npos || rule.substr(0, end) != rule.substr(end + kMiddle.size())) return {};
  return rule.substr(0, end);
}

bool holds(std::string_view rule, const Json& value, const Json& before) {
  if (rule == "self == oldSelf") return value == before;
  const std::string_view name = member_that_stays(rule);
  return name.empty() || (value.find(name) == nullptr) == (before.find(name) == nullptr);
}

// The item of `items` with the keys of `item`, or nullptr.
const Json* find_same_item(const Json& items, const Json& item, const Json::Array& keys) {
  for (const Json& other : items.as_array()) {
    bool is_same = true;
    for (const Json& key : keys)
      if (other.get(key.as_string()) != item.get(key.as_string())) is_same = false;
    if (is_same) return &other;
  }
  return nullptr;
}

void check(const Json& value, const Json& before, const Json& schema, const FieldPath& path,
           FieldErrors& errors);

void check_items(const Json& value, const Json& before, const SchemaView& view,
                 const FieldPath& path, FieldErrors& errors) {
  const Json* items = view.find("items");
  if (items == nullptr || view.text("x-kubernetes-list-type") != "map") return;
  for (std::size_t i = 0; i < value.as_array().size(); ++i) {
    const Json& item = value.as_array()[i];
    const Json* same = find_same_item(before, item, view.list("x-kubernetes-list-map-keys"));
    if (same != nullptr) check(item, *same, *items, FieldPath(path, i), errors);
  }
}

void check(const Json& value, const Json& before, const Json& schema, const FieldPath& path,
           FieldErrors& errors) {
  const SchemaView view(schema);
  for (const Json& rule : view.list("x-kubernetes-validations"))
    if (!holds(rule.get_string("rule"), value, before))
      errors.push_back(
          kube::invalid(path.to_string(), value, std::string(rule.get_string("message"))));
  if (value.is_array() && before.is_array()) check_items(value, before, view, path, errors);
  if (!value.is_object()) return;
  for (const auto& [name, member] : value.as_object()) {
    const Json* old_member = before.find(name);
    const Json* below = old_member == nullptr ? nullptr : view.member(name);
    if (below != nullptr) check(member, *old_member, *below, FieldPath(path, name), errors);
  }
}

}  // namespace

FieldErrors check_transitions(const Json& object, const Json& before, const wire::Schema& schema) {
  FieldErrors errors;
  check(object, before, schema.document, FieldPath(""), errors);
  return errors;
}

}  // namespace trainer
