#include "kube/model/field_error.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/numbers.hh"

namespace kube {
namespace {

constexpr std::size_t kLongestValue = 300;
constexpr std::size_t kMostLines = 200;  // of an object with an error in each item of a long list

std::string_view describe(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::kInvalid:
    case FieldError::Type::kTypeInvalid:
      return "Invalid value";
    case FieldError::Type::kRequired:
      return "Required value";
    case FieldError::Type::kForbidden:
      return "Forbidden";
    case FieldError::Type::kNotSupported:
      return "Unsupported value";
    case FieldError::Type::kDuplicate:
      return "Duplicate value";
    case FieldError::Type::kTooLong:
      return "Too long";
    case FieldError::Type::kTooMany:
      return "Too many";
    case FieldError::Type::kInternal:
      return "Internal error";
  }
  return "Internal error";
}

bool shows_value(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::kRequired:
    case FieldError::Type::kForbidden:
    case FieldError::Type::kTooLong:
    case FieldError::Type::kInternal:
      return false;
    case FieldError::Type::kInvalid:
    case FieldError::Type::kNotSupported:
    case FieldError::Type::kDuplicate:
    case FieldError::Type::kTooMany:
    case FieldError::Type::kTypeInvalid:
      return true;
  }
  return true;
}

// As Go's %q prints a string, except that unprintable characters beyond ASCII stay as they are.
std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\a':
        quoted += "\\a";
        break;
      case '\b':
        quoted += "\\b";
        break;
      case '\f':
        quoted += "\\f";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\t':
        quoted += "\\t";
        break;
      case '\v':
        quoted += "\\v";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          quoted += c;
        }
    }
  }
  return quoted + '"';
}

std::string print_value(const Json& value) {
  std::string text;
  if (value.is_string()) {
    text = quote(value.as_string());
  } else if (value.is_double() && std::isfinite(value.as_double())) {
    text = print_double(value.as_double(), DoubleStyle::kValue);
  } else {
    text = print_json(value);
  }
  if (text.size() <= kLongestValue) return text;
  std::size_t cut = kLongestValue;
  while ((static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
  return text.substr(0, cut) + "...";
}

}  // namespace

std::string FieldError::to_string() const {
  // Upstream prints an absent path so, and clients show it.
  std::string text = fmt::format("{}: {}", path.empty() ? "<nil>" : path, describe(type));
  if (shows_value(type)) text += ": " + print_value(value);
  if (!detail.empty()) text += ": " + detail;
  return text;
}

std::string to_string(const FieldErrors& errors) {
  std::vector<std::string> lines;
  for (const FieldError& error : errors) {
    if (lines.size() == kMostLines) {
      lines.push_back(fmt::format("and more; {} errors in all", errors.size()));
      break;
    }
    std::string line = error.to_string();
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  if (lines.size() == 1) return lines.front();
  return lines.empty() ? "" : fmt::format("[{}]", fmt::join(lines, ", "));
}

FieldError invalid(std::string path, Json value, std::string detail) {
  return {FieldError::Type::kInvalid, std::move(path), std::move(value), std::move(detail)};
}

FieldError forbidden(std::string path, std::string detail) {
  return {FieldError::Type::kForbidden, std::move(path), Json(), std::move(detail)};
}

FieldError required(std::string path, std::string detail) {
  return {FieldError::Type::kRequired, std::move(path), Json(), std::move(detail)};
}

FieldError not_supported(std::string path, Json value,
                         const std::vector<std::string_view>& supported) {
  std::string detail;
  for (const auto choice : supported)
    detail += (detail.empty() ? "supported values: " : ", ") + quote(choice);
  return {FieldError::Type::kNotSupported, std::move(path), std::move(value), std::move(detail)};
}

FieldError too_long(std::string path, std::size_t limit) {
  return {FieldError::Type::kTooLong, std::move(path), Json(),
          fmt::format("may not be more than {} {}", limit, limit == 1 ? "byte" : "bytes")};
}

FieldError too_many(std::string path, std::size_t count, std::size_t limit) {
  return {FieldError::Type::kTooMany, std::move(path), Json(static_cast<std::int64_t>(count)),
          fmt::format("must have at most {} {}", limit, limit == 1 ? "item" : "items")};
}

FieldError duplicate(std::string path, Json value) {
  return {FieldError::Type::kDuplicate, std::move(path), std::move(value), ""};
}

std::string join_field(std::string_view path, std::string_view member) {
  return path.empty() ? std::string(member) : fmt::format("{}.{}", path, member);
}

std::string join_index(std::string_view path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

std::string join_key(std::string_view path, std::string_view key) {
  return fmt::format("{}[{}]", path, key);
}

}  // namespace kube
