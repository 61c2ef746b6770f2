// The structural schema check of the API server, over the same schemas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "api/api.hh"
#include "api/describe/path.hh"
#include "api/describe/reader.hh"
#include "api/schema/kinds.hh"
#include "api/schema/rules.hh"
#include "api/schema/schema_view.hh"
#include "kube/model/json_text.hh"
#include "kube/model/time.hh"

namespace trainer {
namespace {

using kube::FieldErrors;
using kube::Json;
using wire::Place;

void check(const Json& value, const Json& schema, const Place& place, FieldErrors& errors);

bool is_whole(const Json& value) {
  return value.is_int() ||
         (value.is_double() && value.as_double() == std::trunc(value.as_double()));
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "integer") return is_whole(value);
  if (type == "number") return value.is_number();
  return value.type_name() == type;
}

bool check_type(const Json& value, const SchemaView& schema, const Place& place,
                FieldErrors& errors) {
  if (schema.is_set("x-kubernetes-int-or-string")) {
    if (is_whole(value) || value.is_string()) return true;
    wire::add_type_error(place, value, "integer or string", errors);
    return false;
  }
  if (schema.type().empty() || has_type(value, schema.type())) return true;
  wire::add_type_error(place, value, schema.type(), errors);
  return false;
}

void check_enum(const Json& value, const SchemaView& schema, const Place& place,
                FieldErrors& errors) {
  const Json::Array& allowed = schema.list("enum");
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  std::vector<std::string_view> names;
  for (const Json& name : allowed) names.push_back(name.as_string());
  errors.push_back(kube::not_supported(place.path(), value, names));
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void check_string(const Json& value, const SchemaView& schema, const Place& place,
                  FieldErrors& errors) {
  const std::string& text = value.as_string();
  const std::size_t length = characters(text);
  if (const Json* most = schema.find("maxLength"))
    if (length > static_cast<std::size_t>(most->as_int()))
      errors.push_back(kube::too_long(place.path(), static_cast<std::size_t>(most->as_int())));
  if (const Json* least = schema.find("minLength"))
    if (length < static_cast<std::size_t>(least->as_int()))
      errors.push_back(kube::invalid(
          place.path(), value, fmt::format("should be at least {} chars long", least->as_int())));
  if (const std::string_view pattern = schema.text("pattern"); !pattern.empty())
    if (!matches_pattern(pattern, text).value_or(true))
      errors.push_back(
          kube::invalid(place.path(), value, fmt::format("should match '{}'", pattern)));
  if (schema.text("format") == "date-time" && !kube::Time::parse(text))
    errors.push_back(kube::invalid(place.path(), value,
                                   "must be an RFC 3339 time such as \"2006-01-02T15:04:05Z\""));
}

void check_number(const Json& value, const SchemaView& schema, const Place& place,
                  FieldErrors& errors) {
  const double number = value.as_double();
  if (const Json* least = schema.find("minimum"); least != nullptr && number < least->as_double())
    errors.push_back(
        kube::invalid(place.path(), value,
                      fmt::format("should be greater than or equal to {}", least->as_int())));
  if (const Json* most = schema.find("maximum"); most != nullptr && number > most->as_double())
    errors.push_back(kube::invalid(
        place.path(), value, fmt::format("should be less than or equal to {}", most->as_int())));
  using Limits = std::numeric_limits<std::int32_t>;
  if (schema.text("format") == "int32" && (number < Limits::min() || number > Limits::max()))
    errors.push_back(
        kube::invalid(place.path(), value,
                      fmt::format("must be between {} and {}", Limits::min(), Limits::max())));
}

// What makes an item of a list map or a set unlike the others; null for an item that the other
// checks refuse.
Json key_of(const Json& item, const SchemaView& list, const SchemaView& items) {
  if (list.text("x-kubernetes-list-type") == "set") return item;
  Json key;
  for (const Json& name : list.list("x-kubernetes-list-map-keys")) {
    const Json* member = item.find(name.as_string());
    if (member == nullptr)
      if (const Json* schema = items.member(name.as_string()))
        member = SchemaView(*schema).find("default");
    if (member == nullptr) return {};
    key.set(name.as_string(), *member);
  }
  return key;
}

void check_duplicates(const Json::Array& items, const SchemaView& schema, const Place& place,
                      FieldErrors& errors) {
  const std::string_view type = schema.text("x-kubernetes-list-type");
  const Json* item_schema = schema.find("items");
  if ((type != "map" && type != "set") || item_schema == nullptr) return;
  const SchemaView item_view(*item_schema);
  std::vector<std::pair<std::string, std::size_t>> keys;  // printed, so that they sort
  std::vector<Json> values;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Json key = key_of(items[i], schema, item_view);
    if (!key.is_null()) keys.emplace_back(kube::print_json(key), i);
    values.push_back(std::move(key));
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 1; i < keys.size(); ++i)
    if (keys[i].first == keys[i - 1].first)
      errors.push_back(
          kube::duplicate(Place(place, keys[i].second).path(), values[keys[i].second]));
}

void check_array(const Json& value, const SchemaView& schema, const Place& place,
                 FieldErrors& errors) {
  const Json::Array& items = value.as_array();
  if (const Json* most = schema.find("maxItems"))
    if (items.size() > static_cast<std::size_t>(most->as_int()))
      errors.push_back(
          kube::too_many(place.path(), items.size(), static_cast<std::size_t>(most->as_int())));
  if (const Json* least = schema.find("minItems"))
    if (items.size() < static_cast<std::size_t>(least->as_int()))
      errors.push_back(
          kube::invalid(place.path(), static_cast<std::int64_t>(items.size()),
                        fmt::format("should have at least {} items", least->as_int())));
  if (const Json* schema_of_items = schema.find("items"))
    for (std::size_t i = 0; i < items.size(); ++i)
      check(items[i], *schema_of_items, Place(place, i), errors);
  check_duplicates(items, schema, place, errors);
}

void check_object(const Json& value, const SchemaView& schema, const Place& place,
                  FieldErrors& errors) {
  for (const Json& name : schema.list("required")) {
    const Json* member = value.find(name.as_string());
    if (member == nullptr || member->is_null())
      errors.push_back(kube::required(Place(place, name.as_string()).path(), ""));
  }
  if (const Json* least = schema.find("minProperties"))
    if (value.size() < static_cast<std::size_t>(least->as_int()))
      errors.push_back(
          kube::invalid(place.path(), static_cast<std::int64_t>(value.size()),
                        fmt::format("should have at least {} properties", least->as_int())));
  for (const auto& [name, member] : value.as_object())
    if (const Json* below = schema.member(name))
      if (!member.is_null()) check(member, *below, Place(place, name), errors);
}

void check_rules(const Json& value, const SchemaView& schema, const Place& place,
                 FieldErrors& errors) {
  for (const Json& rule : schema.list("x-kubernetes-validations")) {
    if (keeps_rule(rule.get_string("rule"), value).value_or(true)) continue;
    const std::string message(rule.get_string("message"));
    if (const std::string_view member = rule.get_string("fieldPath"); !member.empty())
      errors.push_back(kube::forbidden(Place(place, member.substr(1)).path(), message));
    else
      errors.push_back(kube::invalid(place.path(), value, message));
  }
}

void check(const Json& value, const Json& schema, const Place& place, FieldErrors& errors) {
  const SchemaView view(schema);
  if (!check_type(value, view, place, errors)) return;
  const std::size_t before = errors.size();
  check_enum(value, view, place, errors);
  if (value.is_string()) check_string(value, view, place, errors);
  if (value.is_number()) check_number(value, view, place, errors);
  if (value.is_array()) check_array(value, view, place, errors);
  if (value.is_object()) check_object(value, view, place, errors);
  // As the API server: rules speak of values whose parts are sound.
  if (errors.size() == before) check_rules(value, view, place, errors);
}

void collect_unknown(const Json& value, const Json& schema, const Place& place,
                     std::vector<std::string>& found) {
  const SchemaView view(schema);
  if (view.is_set("x-kubernetes-preserve-unknown-fields")) return;
  if (value.is_array()) {
    const Json* items = view.find("items");
    for (std::size_t i = 0; items != nullptr && i < value.as_array().size(); ++i)
      collect_unknown(value.as_array()[i], *items, Place(place, i), found);
  }
  if (!value.is_object()) return;
  for (const auto& [name, member] : value.as_object()) {
    const Place below(place, name);
    if (const Json* known = view.member(name))
      collect_unknown(member, *known, below, found);
    else
      found.push_back(below.path());
  }
}

}  // namespace

FieldErrors check_schema(const Json& object) {
  FieldErrors errors;
  const Json* schema = find_schema(object.get_string("kind"));
  if (schema == nullptr) {
    std::vector<std::string_view> kinds;
    for (const ServedKind& kind : served_kinds()) kinds.push_back(kind.resource.kind);
    errors.push_back(kube::not_supported("kind", object.get_string("kind"), kinds));
    return errors;
  }
  check(object, *schema, Place(""), errors);
  return errors;
}

std::vector<std::string> unknown_fields(const Json& object) {
  std::vector<std::string> found;
  const Json* schema = find_schema(object.get_string("kind"));
  if (schema == nullptr || !object.is_object()) return found;
  for (const auto& [name, member] : object.as_object()) {
    if (name == "metadata") continue;  // the API server's own
    if (const Json* known = SchemaView(*schema).member(name))
      collect_unknown(member, *known, Place(name), found);
    else
      found.push_back(name);
  }
  return found;
}

}  // namespace trainer
