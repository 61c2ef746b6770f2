#include "runtimes/pipeline/leaves.hh"

#include <algorithm>
#include <array>
#include <string_view>

#include "kube/model/field_error.hh"

namespace trainer::pipeline {

namespace {

using Visit = std::function<void(const std::string&, const kube::Json&)>;

// Returns whether the keys of a map are data, often with dots in them: they are printed as keys.
bool is_map(std::string_view member) {
  static constexpr std::array<std::string_view, 6> kMaps = {
      "labels", "annotations", "nodeSelector", "matchLabels", "limits", "requests"};
  return std::find(kMaps.begin(), kMaps.end(), member) != kMaps.end();
}

struct Walk {
  const kube::MergeKeys& keys;
  const Visit& visit;

  void members(const kube::Json& object, const std::string& path, const std::string& type,
               bool as_map, std::string_view skip) const {
    for (const auto& [name, value] : object.as_object()) {
      if (name == skip) continue;
      const std::string below = as_map ? kube::join_key(path, name) : kube::join_field(path, name);
      value_at(value, below, kube::join_field(type, name), !as_map && is_map(name));
    }
  }

  void value_at(const kube::Json& value, const std::string& path, const std::string& type,
                bool as_map) const {
    const auto key = value.is_array() ? keys.key_of(type) : std::nullopt;
    if (value.is_object()) {
      members(value, path, type, as_map, {});
    } else if (key) {
      for (const kube::Json& item : value.as_array())
        if (item.is_object())
          // No valid name is longer, and the name is in the path of each value below.
          members(item, kube::join_key(path, item.get_string(*key).substr(0, 253)), type, false,
                  *key);
    } else {
      visit(path, value);
    }
  }
};

}  // namespace

void visit_leaves(const kube::Json& patch, const std::string& prefix, const kube::MergeKeys& keys,
                  const Visit& visit) {
  const Walk walk{keys, visit};
  if (patch.is_object()) walk.members(patch, prefix, "", false, {});
}

}  // namespace trainer::pipeline
