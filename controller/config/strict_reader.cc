#include "controller/config/strict_reader.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "controller/config/values.hh"

namespace trainer {

StrictReader::StrictReader(const kube::Json* object, std::string path, kube::FieldErrors& errors)
    : object_(object), path_(std::move(path)), errors_(errors) {
  if (object_ != nullptr && !object_->is_object()) {
    errors_.push_back(kube::invalid(
        path_, *object_, fmt::format("must be an object, not {}", object_->type_name())));
    object_ = nullptr;
  }
}

const kube::Json* StrictReader::find(std::string_view name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.emplace_back(name);
  const kube::Json* value = object_ == nullptr ? nullptr : object_->find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void StrictReader::wrong_type(std::string_view name, const kube::Json& value,
                              std::string_view desired) {
  errors_.push_back(kube::invalid(path_of(name), value, fmt::format("must be {}", desired)));
}

void StrictReader::read(std::string_view name, bool& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_bool()) return wrong_type(name, *value, "true or false");
  target = value->as_bool();
}

void StrictReader::read(std::string_view name, std::string& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return wrong_type(name, *value, "a string: put it in quotes");
  target = value->as_string();
}

void StrictReader::read(std::string_view name, std::int32_t& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  using Limits = std::numeric_limits<std::int32_t>;
  if (!value->is_int() || value->as_int() < Limits::min() || value->as_int() > Limits::max()) {
    return wrong_type(name, *value, "a whole number of 32 bits");
  }
  target = static_cast<std::int32_t>(value->as_int());
}

void StrictReader::read(std::string_view name, double& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_number()) return wrong_type(name, *value, "a number");
  target = value->as_double();
}

void StrictReader::read(std::string_view name, std::chrono::milliseconds& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  const auto duration = value->is_string() ? parse_duration(value->as_string()) : std::nullopt;
  if (!duration) return wrong_type(name, *value, "a duration such as \"15s\" or \"1m30s\"");
  target = *duration;
}

void StrictReader::read(std::string_view name, std::vector<std::string>& target) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  const bool is_list =
      value->is_array() && std::all_of(value->as_array().begin(), value->as_array().end(),
                                       [](const auto& item) { return item.is_string(); });
  if (!is_list) return wrong_type(name, *value, "a list of strings");
  target.clear();
  for (const kube::Json& item : value->as_array()) target.push_back(item.as_string());
}

void StrictReader::read_map(
    std::string_view name,
    const std::function<void(const std::string&, const kube::Json&, const std::string&)>& each) {
  const kube::Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_object()) return wrong_type(name, *value, "a map");
  for (const auto& [key, item] : value->as_object()) {
    each(key, item, kube::join_key(path_of(name), key));
  }
}

StrictReader StrictReader::object(std::string_view name) {
  return StrictReader(find(name), path_of(name), errors_);
}

void StrictReader::finish() {
  if (object_ == nullptr) return;
  for (const auto& [name, value] : object_->as_object()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    errors_.push_back(kube::forbidden(
        path_of(name),
        fmt::format("there is no such field: choose from {}", fmt::join(known_, ", "))));
  }
}

}  // namespace trainer
