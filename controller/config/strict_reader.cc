#include "controller/config/strict_reader.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "api/describe/reader.hh"
#include "controller/config/values.hh"

namespace trainer {
namespace {

// Reads a value as the API's objects are read, but with the words of this file.
template <class Value>
std::string read_as(const kube::Json& value, Value& target, std::string_view desired) {
  kube::FieldErrors errors;
  Value read{};
  wire::read(value, wire::FieldPath(""), read, errors);
  if (!errors.empty()) return fmt::format("must be {}", desired);
  target = std::move(read);
  return {};
}

}  // namespace

std::string read_value(const kube::Json& value, bool& target) {
  return read_as(value, target, "true or false");
}

std::string read_value(const kube::Json& value, std::string& target) {
  return read_as(value, target, "a string: put it in quotes");
}

std::string read_value(const kube::Json& value, std::int32_t& target) {
  // To the API 1.0 is a whole number, to Go, which reads upstream's file, it is none.
  constexpr std::string_view kDesired = "a whole number of 32 bits";
  return value.is_int() ? read_as(value, target, kDesired) : fmt::format("must be {}", kDesired);
}

std::string read_value(const kube::Json& value, std::vector<std::string>& target) {
  return read_as(value, target, "a list of strings");
}

std::string read_value(const kube::Json& value, double& target) {
  if (!value.is_number()) return "must be a number";
  target = value.as_double();
  return {};
}

std::string read_value(const kube::Json& value, std::chrono::milliseconds& target) {
  const auto duration = value.is_string() ? parse_duration(value.as_string()) : std::nullopt;
  if (!duration) return "must be a duration such as \"15s\" or \"1m30s\"";
  target = *duration;
  return {};
}

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

void StrictReader::finish() {
  if (object_ == nullptr) return;
  for (const auto& [name, value] : object_->as_object()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    add(kube::forbidden(path_of(name), fmt::format("there is no such field: choose from {}",
                                                   fmt::join(known_, ", "))));
  }
}

}  // namespace trainer
