#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/server/typed.hh"

namespace kube::server {
namespace {

using ListType = FieldSchema::ListType;

class Validator {
 public:
  void check(const Json& value, const FieldSchema& schema, const FieldPath& path) {
    if (!schema.accepts(value))
      return report(path,
                    fmt::format("expected {}, got &{{{}}}", schema.type(), print_json(value)));
    if (value.is_object()) {
      for (const auto& [name, member] : value.as_object()) {
        FieldPath below = path;
        below.push_back(fmt::format("f:{}", name));
        if (!schema.allows(name)) {
          report(below, "field not declared in schema");
        } else {
          check(member, schema.member(name), below);
        }
      }
    } else if (value.is_array()) {
      check_items(value.as_array(), schema, path);
    }
  }
  std::vector<std::string> take() { return std::move(errors_); }

 private:
  void report(const FieldPath& path, std::string_view what) {
    errors_.push_back(fmt::format("{}: {}", print_path(path), what));
  }

  void check_items(const Json::Array& items, const FieldSchema& schema, const FieldPath& path) {
    std::vector<std::string> seen;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (schema.list_type() == ListType::kAtomic) {
        check_item(items[i], schema, path, i);
        continue;
      }
      const auto element = element_of(items[i], schema);
      if (!element) {
        report(path, fmt::format("element {}: {}", i, missing_key(items[i], schema)));
        continue;
      }
      FieldPath below = path;
      below.push_back(*element);
      if (std::find(seen.begin(), seen.end(), *element) != seen.end())
        report(path, fmt::format("duplicate entries for key {}", print_path({*element})));
      seen.push_back(*element);
      check(items[i], schema.items(), below);
    }
  }

  // Checks an item of a list that names its items only by their places.
  void check_item(const Json& item, const FieldSchema& schema, const FieldPath& path,
                  std::size_t index) {
    Validator inner;
    inner.check(item, schema.items(), {});
    for (const std::string& error : inner.take())
      errors_.push_back(fmt::format("{}[{}]{}", print_path(path), index, error));
  }

  static std::string missing_key(const Json& item, const FieldSchema& schema) {
    if (schema.list_type() == ListType::kSet)
      return "associative list without keys has an element that's not a scalar";
    if (!item.is_object()) return "associative list with keys may not have non-map elements";
    std::string keys;
    for (const Json& key : schema.list_keys()) keys += (keys.empty() ? "" : " ") + print_json(key);
    return fmt::format(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't "
        "have default values for any key fields)",
        keys);
  }

  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> typed_errors(const Json& value, const FieldSchema& schema) {
  Validator validator;
  validator.check(value, schema, {});
  return validator.take();
}

}  // namespace kube::server
