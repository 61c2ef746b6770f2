// The API server's check of structural schemas is made here, over the same schemas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "api/describe/path.hh"
#include "api/describe/reader.hh"
#include "api/schema/schema_view.hh"
#include "api/schema/stored_part.hh"
#include "api/schema/structural_schema.hh"
#include "kube/model/json_text.hh"
#include "kube/model/time.hh"

namespace trainer {
namespace {

using kube::FieldErrors;
using kube::Json;
using wire::FieldPath;

class Checker {
 public:
  Checker(const wire::Predicates& predicates, FieldErrors& errors)
      : predicates_(predicates), errors_(errors) {}

  // `before` is the stored value, or nullptr.
  void check(const Json& value, const Json& schema, const FieldPath& path, const Json* before);

 private:
  void check_string(const Json& value, const SchemaView& schema, const FieldPath& path);
  void check_array(const Json& value, const SchemaView& schema, const FieldPath& path,
                   const Json* before);
  void check_object(const Json& value, const SchemaView& schema, const FieldPath& path,
                    const Json* before);
  void check_rules(const Json& value, const SchemaView& schema, const FieldPath& path,
                   const Json* before);
  // Returns true also for a rule or pattern without a predicate.
  bool holds(std::string_view text, const Json& value) const {
    const auto at = predicates_.rules.find(text);
    return at == predicates_.rules.end() || at->second(value);
  }

  const wire::Predicates& predicates_;
  FieldErrors& errors_;
};

bool is_whole(const Json& value) {
  return value.is_int() ||
         (value.is_double() && value.as_double() == std::trunc(value.as_double()));
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "integer") return is_whole(value);
  if (type == "number") return value.is_number();
  return value.type_name() == type;
}

bool check_type(const Json& value, const SchemaView& schema, const FieldPath& path,
                FieldErrors& errors) {
  if (schema.is_set("x-kubernetes-int-or-string")) {
    if (is_whole(value) || value.is_string()) return true;
    wire::add_type_error(path, value, "integer or string", errors);
    return false;
  }
  if (schema.type().empty() || has_type(value, schema.type())) return true;
  // If a string has a format, the check of the format also checks the type, and it skips lists
  // (k8s.io/kube-openapi, pkg/validation/validate/type.go).
  if (value.is_array() && schema.type() == "string" && !schema.text("format").empty()) return true;
  wire::add_type_error(path, value, schema.type(), errors);
  return false;
}

void check_enum(const Json& value, const SchemaView& schema, const FieldPath& path,
                FieldErrors& errors) {
  const Json::Array& allowed = schema.list("enum");
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  std::vector<std::string_view> names;
  for (const Json& name : allowed) names.push_back(name.as_string());
  errors.push_back(kube::not_supported(path.to_string(), value, names));
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void Checker::check_string(const Json& value, const SchemaView& schema, const FieldPath& path) {
  const std::string& text = value.as_string();
  const std::size_t length = characters(text);
  if (const Json* most = schema.find("maxLength"))
    if (length > static_cast<std::size_t>(most->as_int()))
      errors_.push_back(kube::too_long(path.to_string(), static_cast<std::size_t>(most->as_int())));
  if (const Json* least = schema.find("minLength"))
    if (length < static_cast<std::size_t>(least->as_int()))
      errors_.push_back(
          kube::invalid(path.to_string(), value,
                        fmt::format("should be at least {} chars long", least->as_int())));
  if (const std::string_view pattern = schema.text("pattern"); !pattern.empty())
    if (!holds(pattern, value))
      errors_.push_back(
          kube::invalid(path.to_string(), value, fmt::format("should match '{}'", pattern)));
  if (schema.text("format") == "date-time" && !kube::Time::parse(text))
    errors_.push_back(kube::invalid(path.to_string(), value,
                                    "must be an RFC 3339 time such as \"2006-01-02T15:04:05Z\""));
}

void check_number(const Json& value, const SchemaView& schema, const FieldPath& path,
                  FieldErrors& errors) {
  const double number = value.as_double();
  if (const Json* least = schema.find("minimum"); least != nullptr && number < least->as_double())
    errors.push_back(
        kube::invalid(path.to_string(), value,
                      fmt::format("should be greater than or equal to {}", print_json(*least))));
  if (const Json* most = schema.find("maximum"); most != nullptr && number > most->as_double())
    errors.push_back(
        kube::invalid(path.to_string(), value,
                      fmt::format("should be less than or equal to {}", print_json(*most))));
  using Limits = std::numeric_limits<std::int32_t>;
  if (schema.text("format") == "int32" && (number < Limits::min() || number > Limits::max()))
    errors.push_back(
        kube::invalid(path.to_string(), value,
                      fmt::format("must be between {} and {}", Limits::min(), Limits::max())));
}

// Returns the key of an item of a list map, or the item of a set; null for an item that other
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

void check_duplicates(const Json::Array& items, const SchemaView& schema, const FieldPath& path,
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
          kube::duplicate(FieldPath(path, keys[i].second).to_string(), values[keys[i].second]));
}

void Checker::check_array(const Json& value, const SchemaView& schema, const FieldPath& path,
                          const Json* before) {
  const Json::Array& items = value.as_array();
  if (const Json* most = schema.find("maxItems"))
    if (items.size() > static_cast<std::size_t>(most->as_int()))
      errors_.push_back(
          kube::too_many(path.to_string(), items.size(), static_cast<std::size_t>(most->as_int())));
  if (const Json* least = schema.find("minItems"))
    if (items.size() < static_cast<std::size_t>(least->as_int()))
      errors_.push_back(
          kube::invalid(path.to_string(), static_cast<std::int64_t>(items.size()),
                        fmt::format("should have at least {} items", least->as_int())));
  if (const Json* schema_of_items = schema.find("items"))
    for (std::size_t i = 0; i < items.size(); ++i)
      check(items[i], *schema_of_items, FieldPath(path, i), stored_item(before, items, i, schema));
  check_duplicates(items, schema, path, errors_);
}

void Checker::check_object(const Json& value, const SchemaView& schema, const FieldPath& path,
                           const Json* before) {
  for (const Json& name : schema.list("required")) {
    const Json* member = value.find(name.as_string());
    if (member == nullptr || member->is_null())
      errors_.push_back(kube::required(FieldPath(path, name.as_string()).to_string(), ""));
  }
  if (const Json* least = schema.find("minProperties"))
    if (value.size() < static_cast<std::size_t>(least->as_int()))
      errors_.push_back(
          kube::invalid(path.to_string(), static_cast<std::int64_t>(value.size()),
                        fmt::format("should have at least {} properties", least->as_int())));
  for (const auto& [name, member] : value.as_object())
    if (const Json* below = schema.member(name))
      if (!member.is_null())
        check(member, *below, FieldPath(path, name), stored_member(before, name));
}

void Checker::check_rules(const Json& value, const SchemaView& schema, const FieldPath& path,
                          const Json* before) {
  for (const Json& rule : schema.list("x-kubernetes-validations")) {
    if (holds(rule.get_string("rule"), value)) continue;
    const std::string message(rule.get_string("message"));
    const std::string_view member = rule.get_string("fieldPath");
    if (rule.get_bool("optionalOldSelf") && stored_member(before, member.substr(1)) != nullptr)
      continue;
    if (!member.empty())
      errors_.push_back(kube::forbidden(FieldPath(path, member.substr(1)).to_string(), message));
    else
      errors_.push_back(kube::invalid(path.to_string(), value, message));
  }
}

void Checker::check(const Json& value, const Json& schema, const FieldPath& path,
                    const Json* before) {
  const SchemaView view(schema);
  if (!check_type(value, view, path, errors_)) return;
  const std::size_t already = errors_.size();
  check_enum(value, view, path, errors_);
  if (value.is_string()) check_string(value, view, path);
  if (value.is_number()) check_number(value, view, path, errors_);
  if (value.is_array()) check_array(value, view, path, before);
  if (value.is_object()) check_object(value, view, path, before);
  // A rule runs only on a value without other errors, like in the API server.
  if (errors_.size() == already) check_rules(value, view, path, before);
}

}  // namespace

FieldErrors check_schema(const Json& object, const wire::Schema& schema, const Json* before) {
  FieldErrors errors;
  Checker(schema.predicates, errors).check(object, schema.document, FieldPath(""), before);
  return errors;
}

}  // namespace trainer
