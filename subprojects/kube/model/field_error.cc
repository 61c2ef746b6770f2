#include "kube/model/field_error.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/numbers.hh"
#include "kube/model/text.hh"

namespace kube {
namespace {

constexpr std::size_t kLongestValue = 300;
constexpr std::size_t kMaxLines = 200;  // an object may have an error in each item of a long list

// These are the forms of messages, by type.
struct Form {
  std::string_view what;
  bool shows_value = true;
};
constexpr Form kForms[] = {
    {"Invalid value"},     {"Required value", false}, {"Forbidden", false},
    {"Unsupported value"}, {"Duplicate value"},       {"Too long", false},
    {"Too many"},          {"Invalid value"},         {"Internal error", false}};

// Quotes a string like Go's %q, except that unprintable characters beyond ASCII stay unchanged.
std::string quote(std::string_view text) {
  constexpr std::string_view kEscaped = "\"\\\a\b\f\n\r\t\v";
  constexpr std::string_view kLetters = "\"\\abfnrtv";
  std::string quoted = "\"";
  for (const char c : text) {
    if (const std::size_t at = kEscaped.find(c); at != kEscaped.npos) {
      quoted.append(1, '\\').append(1, kLetters[at]);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
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
  return std::string(head_of(text, kLongestValue)) + "...";
}

}  // namespace

std::string FieldError::to_string() const {
  const Form& form = kForms[static_cast<std::size_t>(type)];
  // Upstream prints an absent path in this way, and clients show it.
  std::string text = fmt::format("{}: {}", path.empty() ? "<nil>" : path, form.what);
  if (form.shows_value) text += ": " + print_value(value);
  if (!detail.empty()) text += ": " + detail;
  return text;
}

std::string to_string(const FieldErrors& errors) {
  std::vector<std::string> lines;
  for (const FieldError& error : errors) {
    if (lines.size() == kMaxLines) {
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

void erase_known(FieldErrors& errors, const FieldErrors& known) {
  std::set<std::string> texts;
  for (const FieldError& error : known) texts.insert(error.to_string());
  std::erase_if(errors,
                [&texts](const FieldError& error) { return texts.contains(error.to_string()); });
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
