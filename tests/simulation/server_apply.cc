#include "tests/simulation/server_apply.hh"

#include <algorithm>
#include <string>

#include "kube/model/json_text.hh"

namespace trainer::simulation {
namespace {

using kube::Json;

const Json& member(const Json& value, std::string_view name) {
  static const Json kNothing;
  const Json* found = value.find(name);
  return found ? *found : kNothing;
}

// Lists of named objects merge by name; all others are replaced whole.
bool is_keyed(const Json& list) {
  return list.is_array() && !list.as_array().empty() &&
         std::all_of(list.as_array().begin(), list.as_array().end(),
                     [](const Json& item) { return item.is_object() && item.find("name"); });
}

const Json& named(const Json& list, std::string_view name) {
  static const Json kNothing;
  if (!list.is_array()) return kNothing;
  for (const Json& item : list.as_array()) {
    if (item.get_string("name") == name) return item;
  }
  return kNothing;
}

Json merge(const Json& current, const Json& before, const Json& desired);

Json merge_list(const Json& current, const Json& before, const Json& desired) {
  Json merged = Json::array();
  for (const Json& item : desired.as_array()) {
    const auto name = item.get_string("name");
    merged.push_back(merge(named(current, name), named(before, name), item));
  }
  if (!current.is_array()) return merged;
  for (const Json& item : current.as_array()) {
    const auto name = item.get_string("name");
    if (named(desired, name).is_null() && named(before, name).is_null()) merged.push_back(item);
  }
  return merged;
}

Json merge(const Json& current, const Json& before, const Json& desired) {
  if (is_keyed(desired)) return merge_list(current, before, desired);
  if (!desired.is_object()) return desired;
  Json merged = current.is_object() ? current : Json::object();
  if (before.is_object()) {
    for (const auto& [name, value] : before.as_object()) {
      if (!desired.find(name)) merged.erase(name);
    }
  }
  for (const auto& [name, value] : desired.as_object()) {
    merged.set(name, merge(member(current, name), member(before, name), value));
  }
  return merged;
}

// FieldsV1 of a value.
Json fields_of(const Json& value) {
  Json fields = Json::object();
  if (value.is_object()) {
    for (const auto& [name, below] : value.as_object()) fields.set("f:" + name, fields_of(below));
  } else if (is_keyed(value)) {
    for (const Json& item : value.as_array()) {
      const Json key = Json::object({{"name", item.get_string("name")}});
      fields.set("k:" + kube::print_json(key), fields_of(item));
    }
  }
  return fields;
}

}  // namespace

Json server_side_apply(const Json& current, const Json& before, const Json& desired) {
  return merge(current, before, desired);
}

Json managed_fields_of(const Json& desired) {
  Json content = desired;
  for (const auto name : {"apiVersion", "kind"}) content.erase(name);
  if (Json* metadata = content.find("metadata")) {
    for (const auto name : {"name", "namespace", "uid"}) metadata->erase(name);
  }
  Json entry = Json::object({{"manager", "trainer"}, {"operation", "Apply"}});
  entry.set("fieldsV1", fields_of(content));
  return Json::array({std::move(entry)});
}

}  // namespace trainer::simulation
