#include "controller/config/strict_reader.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "controller/config/values.hh"

namespace trainer {

StrictReader::StrictReader(const kube::Json* object, std::string path, Findings& findings)
    : object_(object), path_(std::move(path)), findings_(findings) {
  if (object_ != nullptr && !object_->is_object()) {
    add(kube::invalid(path_, *object_, "must be an object, not {}", object_->type_name()));
    object_ = nullptr;
  }
}

const kube::Json* StrictReader::find(std::string_view name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.emplace_back(name);
  const kube::Json* value = object_ == nullptr ? nullptr : object_->find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const kube::Json* StrictReader::find(std::string_view name, bool (kube::Json::*is_desired)() const,
                                     std::string_view desired) {
  const kube::Json* value = find(name);
  if (value == nullptr || (value->*is_desired)()) return value;
  refuse(name, *value, "must be {}", desired);
  return nullptr;
}

void StrictReader::read(std::string_view name, bool& target) {
  if (const auto* value = find(name, &kube::Json::is_bool, "true or false"))
    target = value->as_bool();
}

void StrictReader::read(std::string_view name, std::string& target) {
  if (const auto* value = find(name, &kube::Json::is_string, "a string: put it in quotes"))
    target = value->as_string();
}

void StrictReader::read(std::string_view name, std::int32_t& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_int() || !std::in_range<std::int32_t>(value->as_int()))
    return refuse(name, *value, "must be a whole number of 32 bits");
  target = static_cast<std::int32_t>(value->as_int());
}

void StrictReader::read(std::string_view name, double& target) {
  if (const auto* value = find(name, &kube::Json::is_number, "a number"))
    target = value->as_double();
}

void StrictReader::read(std::string_view name, std::chrono::milliseconds& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  const auto duration = value->is_string() ? parse_duration(value->as_string()) : std::nullopt;
  if (!duration) return refuse(name, *value, "must be a duration such as \"15s\" or \"1m30s\"");
  target = *duration;
}

void StrictReader::read(std::string_view name, std::vector<std::string>& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  const bool is_list =
      value->is_array() && std::all_of(value->as_array().begin(), value->as_array().end(),
                                       [](const auto& item) { return item.is_string(); });
  if (!is_list) return refuse(name, *value, "must be a list of strings");
  target.clear();
  for (const kube::Json& item : value->as_array()) target.push_back(item.as_string());
}

void StrictReader::read_map(
    std::string_view name,
    const std::function<void(const std::string&, const kube::Json&, const std::string&)>& each) {
  const kube::Json* value = find(name, &kube::Json::is_object, "a map");
  if (value == nullptr) return;
  for (const auto& [key, item] : value->as_object()) {
    each(key, item, kube::join_key(name, key));
  }
}

void StrictReader::finish() {
  if (object_ == nullptr) return;
  for (const auto& [name, value] : object_->as_object()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    add(kube::forbidden(path_of(name), fmt::format("there is no such field: choose from {}",
                                                   fmt::join(known_, ", "))));
  }
}

}  // namespace trainer
