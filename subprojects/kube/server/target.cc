#include "kube/server/target.hh"

#include <algorithm>

namespace kube::server {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string unescaped(std::string_view text, bool is_query) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (is_escape) {
      plain += static_cast<char>(16 * digit(text[i + 1]) + digit(text[i + 2]));
      i += 2;
    } else {
      plain += is_query && text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

// Reads the segments behind "/api/v1" or "/apis/GROUP/VERSION".
void read_object(Target& target, const ServedKinds& kinds, std::string_view group,
                 std::string_view version, std::vector<std::string> parts) {
  // A namespace is addressed like the objects in it: /namespaces/NAME/status is its own
  // subresource.
  const bool is_in_namespace =
      parts.size() > 2 && parts[0] == "namespaces" &&
      !(group.empty() && parts.size() == 3 && (parts[2] == "status" || parts[2] == "finalize"));
  std::string ns;
  if (is_in_namespace) {
    ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.empty() || parts.size() > 3) return;
  const ServedKind* kind = find_kind(kinds, group, version, parts[0]);
  if (kind == nullptr || (is_in_namespace && !kind->resource.namespaced)) return;
  if (!is_in_namespace && kind->resource.namespaced && parts.size() > 1) return;
  target.kind = kind;
  target.key.ns = std::move(ns);
  if (parts.size() > 1) target.key.name = parts[1];
  if (parts.size() > 2) target.subresource = parts[2];
}

}  // namespace

Query::Query(std::string_view text) {
  for (const std::string_view pair : split(text, '&')) {
    const std::size_t at = pair.find('=');
    const std::string_view value =
        at == std::string_view::npos ? std::string_view() : pair.substr(at + 1);
    values_.emplace_back(unescaped(pair.substr(0, at), true), unescaped(value, true));
  }
}

std::string_view Query::get(std::string_view name) const {
  for (const auto& [key, value] : values_)
    if (key == name) return value;
  return {};
}

bool Query::has(std::string_view name) const {
  return std::any_of(values_.begin(), values_.end(),
                     [name](const auto& pair) { return pair.first == name; });
}

bool Query::is_true(std::string_view name) const {
  const std::string value = to_lower(get(name));
  return has(name) && value != "false" && value != "0";
}

const ServedKind* find_kind(const ServedKinds& kinds, std::string_view group,
                            std::string_view version, std::string_view plural) {
  const auto at = std::find_if(kinds.begin(), kinds.end(), [&](const ServedKind& kind) {
    const Resource& resource = kind.resource;
    return resource.group == group && resource.version == version && resource.plural == plural;
  });
  return at == kinds.end() ? nullptr : &*at;
}

const ServedKind* find_stored_kind(const ServedKinds& kinds, const Resource& resource) {
  const auto at = std::ranges::find_if(kinds, [&resource](const ServedKind& kind) {
    return kind.resource.has_same_objects(resource);
  });
  return at == kinds.end() ? nullptr : &*at;
}

Target parse_target(const ServedKinds& kinds, std::string_view text) {
  Target target;
  const std::size_t question = text.find('?');
  if (question != std::string_view::npos) target.query = Query(text.substr(question + 1));
  const std::string_view path = text.substr(0, question);
  target.path = unescaped(path, false);
  std::vector<std::string> parts;
  for (const std::string_view part : split(path, '/')) parts.push_back(unescaped(part, false));
  const bool is_core = parts.size() > 2 && parts[0] == "api";
  if (!is_core && !(parts.size() > 3 && parts[0] == "apis")) return target;
  const std::string group = is_core ? "" : parts[1];
  const std::string version = is_core ? parts[1] : parts[2];
  parts.erase(parts.begin(), parts.begin() + (is_core ? 2 : 3));
  read_object(target, kinds, group, version, std::move(parts));
  return target;
}

}  // namespace kube::server
