#include "kube/server/json_path.hh"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "kube/model/text.hh"

namespace kube::server {
namespace {

std::optional<std::string_view> unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.size() < 2 || (text.front() != '\'' && text.front() != '"')) return std::nullopt;
  return text.back() == text.front() ? std::optional(text.substr(1, text.size() - 2))
                                     : std::nullopt;
}

// Returns the position of the bracket that closes text[0]; npos if none does.
std::size_t closing_bracket(std::string_view text) {
  char quote = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

// Checks `@.type=="Ready"` for an item. A literal without quotation marks is a number or a boolean.
bool holds(const Json& item, std::string_view condition) {
  const bool is_equality = condition.find("==") != condition.npos;
  const std::size_t at = condition.find(is_equality ? "==" : "!=");
  if (at == condition.npos || !condition.starts_with('@')) return false;
  const Json* found = find_json_path(item, trimmed(condition.substr(1, at - 1)));
  if (found == nullptr) return false;
  const std::string_view literal = trimmed(condition.substr(at + 2));
  bool is_equal = false;
  if (const auto text = unquoted(literal)) {
    is_equal = found->is_string() && found->as_string() == *text;
  } else if (const auto number = parse_number<std::int64_t>(literal)) {
    is_equal = found->is_int() && found->as_int() == *number;
  } else {
    is_equal = found->is_bool() && literal == (found->as_bool() ? "true" : "false");
  }
  return is_equal == is_equality;
}

const Json* find_member(const Json& value, std::string_view name, std::string_view rest) {
  const Json* member = value.find(name);
  return member == nullptr ? nullptr : find_json_path(*member, rest);
}

const Json* find_named(const Json& value, std::string_view names, std::string_view rest) {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    if (const auto name = unquoted(names.substr(0, comma)))
      if (const Json* found = find_member(value, *name, rest)) return found;
    names.remove_prefix(comma == names.npos ? names.size() : comma + 1);
  }
  return nullptr;
}

// Returns the first of `count` items and the one behind the last that "N", "N:M" or "*" means.
std::optional<std::pair<std::int64_t, std::int64_t>> range_of(std::string_view text,
                                                              std::int64_t count) {
  if (text == "*") return std::pair(std::int64_t{0}, count);
  const std::size_t colon = text.find(':');
  const std::string_view left = text.substr(0, colon);
  const auto first =
      left.empty() ? std::optional<std::int64_t>(0) : parse_number<std::int64_t>(left);
  if (!first) return std::nullopt;
  const std::int64_t from = *first < 0 ? *first + count : *first;
  if (colon == text.npos) return std::pair(from, from + 1);
  const std::string_view right = text.substr(colon + 1);
  const auto last = right.empty() ? std::optional(count) : parse_number<std::int64_t>(right);
  if (!last) return std::nullopt;
  return std::pair(from, *last < 0 ? *last + count : *last);
}

const Json* find_item(const Json& value, std::string_view inside, std::string_view rest) {
  if (!value.is_array()) return nullptr;
  const Json::Array& items = value.as_array();
  if (inside.starts_with("?(") && inside.ends_with(')')) {
    const std::string_view condition = inside.substr(2, inside.size() - 3);
    for (const Json& item : items)
      if (holds(item, trimmed(condition)))
        if (const Json* found = find_json_path(item, rest)) return found;
    return nullptr;
  }
  const auto count = static_cast<std::int64_t>(items.size());
  const auto range = range_of(inside, count);
  if (!range) return nullptr;
  for (std::int64_t i = std::max<std::int64_t>(range->first, 0); i < std::min(range->second, count);
       ++i)
    if (const Json* found = find_json_path(items[static_cast<std::size_t>(i)], rest)) return found;
  return nullptr;
}

// The path is like `.a\.b.c`: a point behind a backslash is part of a name.
const Json* find_dotted(const Json& value, std::string_view path) {
  std::string name;
  std::size_t i = 1;
  for (; i < path.size() && path[i] != '.' && path[i] != '['; ++i) {
    if (path[i] == '\\' && i + 1 < path.size()) ++i;
    name += path[i];
  }
  const std::string_view rest = path.substr(i);
  return name.empty() ? find_json_path(value, rest) : find_member(value, name, rest);
}

}  // namespace

const Json* find_json_path(const Json& object, std::string_view path) {
  if (path.empty()) return &object;
  if (path.front() == '.') return path == "." ? &object : find_dotted(object, path);
  const std::size_t end = path.front() == '[' ? closing_bracket(path) : path.npos;
  if (end == path.npos) return nullptr;
  const std::string_view inside = trimmed(path.substr(1, end - 1));
  const std::string_view rest = path.substr(end + 1);
  if (inside.starts_with('\'') || inside.starts_with('"')) return find_named(object, inside, rest);
  return find_item(object, inside, rest);
}

}  // namespace kube::server
