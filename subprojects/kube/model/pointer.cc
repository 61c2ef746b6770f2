#include <charconv>

#include "kube/model/patch.hh"

namespace kube {
namespace {

// nullopt where a "~" is followed by neither "0" nor "1".
std::optional<std::string> unescape(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      text += token[i];
      continue;
    }
    ++i;
    if (i == token.size() || (token[i] != '0' && token[i] != '1')) return std::nullopt;
    text += token[i] == '0' ? '~' : '/';
  }
  return text;
}

const Json* find_item(const Json::Array& items, std::string_view token) {
  if (token.empty() || (token.size() > 1 && token[0] == '0')) return nullptr;
  std::size_t index = 0;
  const char* const end = token.data() + token.size();
  const auto result = std::from_chars(token.data(), end, index);
  if (result.ec != std::errc() || result.ptr != end || index >= items.size()) return nullptr;
  return &items[index];
}

}  // namespace

const Json* pointer_get(const Json& document, std::string_view pointer) {
  const Json* at = &document;
  while (at && !pointer.empty()) {
    if (pointer.front() != '/') return nullptr;
    pointer.remove_prefix(1);
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    const auto name = unescape(token);
    if (!name) return nullptr;
    at = at->is_array() ? find_item(at->as_array(), *name) : at->find(*name);
  }
  return at;
}

std::string pointer_join(std::string_view pointer, std::string_view token) {
  std::string joined(pointer);
  joined += '/';
  for (const char c : token) {
    if (c == '~') {
      joined += "~0";
    } else if (c == '/') {
      joined += "~1";
    } else {
      joined += c;
    }
  }
  return joined;
}

}  // namespace kube
