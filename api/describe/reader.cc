#include "api/describe/reader.hh"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace trainer::wire {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

// Returns the whole number that `value` is, or nothing. 2.0 is a whole number, since it is one for
// the API server.
std::optional<std::int64_t> whole_number(const kube::Json& value) {
  if (value.is_int()) return value.as_int();
  if (!value.is_double()) return std::nullopt;
  const double number = value.as_double();
  if (number != std::trunc(number) || number < -kTwoTo63 || number >= kTwoTo63) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

kube::FieldError type_error(const FieldPath& path, const kube::Json& value, std::string detail) {
  return {kube::FieldError::Type::kTypeInvalid, path.to_string(), value, std::move(detail)};
}

}  // namespace

void add_type_error(const FieldPath& path, const kube::Json& value, std::string_view expected,
                    kube::FieldErrors& errors) {
  errors.push_back(type_error(
      path, value, fmt::format("must be of type {}, found {}", expected, value.type_name())));
}

void read(const kube::Json& value, const FieldPath& path, std::string& out,
          kube::FieldErrors& errors) {
  if (!value.is_string()) return add_type_error(path, value, "string", errors);
  out = value.as_string();
}

void read(const kube::Json& value, const FieldPath& path, bool& out, kube::FieldErrors& errors) {
  if (!value.is_bool()) return add_type_error(path, value, "boolean", errors);
  out = value.as_bool();
}

void read(const kube::Json& value, const FieldPath& path, std::int32_t& out,
          kube::FieldErrors& errors) {
  using Limits = std::numeric_limits<std::int32_t>;
  const auto number = whole_number(value);
  if (!number) return add_type_error(path, value, "integer", errors);
  if (*number < Limits::min() || *number > Limits::max()) {
    errors.push_back(type_error(
        path, value, fmt::format("must be between {} and {}", Limits::min(), Limits::max())));
    return;
  }
  out = static_cast<std::int32_t>(*number);
}

void read(const kube::Json& value, const FieldPath& path, std::int64_t& out,
          kube::FieldErrors& errors) {
  const auto number = whole_number(value);
  if (!number) return add_type_error(path, value, "integer", errors);
  out = *number;
}

void read(const kube::Json& value, const FieldPath& path, IntOrString& out,
          kube::FieldErrors& errors) {
  if (value.is_string()) return read(value, path, out.word, errors);
  if (!value.is_number()) return add_type_error(path, value, "integer or string", errors);
  read(value, path, out.number.emplace(), errors);
}

void read(const kube::Json& value, const FieldPath& path, kube::Time& out,
          kube::FieldErrors& errors) {
  if (!value.is_string()) return add_type_error(path, value, "string", errors);
  const auto time = kube::Time::parse(value.as_string());
  if (!time) {
    errors.push_back(
        type_error(path, value, "must be an RFC 3339 time such as \"2006-01-02T15:04:05Z\""));
    return;
  }
  out = *time;
}

void read(const kube::Json& value, const FieldPath& path, kube::Condition& out,
          kube::FieldErrors& errors) {
  if (!value.is_object()) return add_type_error(path, value, "object", errors);
  out = kube::Condition::read(value);
}

void read(const kube::Json& value, const FieldPath& path, kube::Json& out,
          kube::FieldErrors& errors) {
  if (!value.is_object()) return add_type_error(path, value, "object", errors);
  out = value;
}

}  // namespace trainer::wire
