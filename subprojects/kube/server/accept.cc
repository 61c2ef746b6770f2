#include "kube/server/accept.hh"

#include <algorithm>

namespace kube::server {
namespace {

// Takes the text before the next separator off the front, without spaces around it.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  std::string_view part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ')) part.remove_suffix(1);
  return part;
}

}  // namespace

std::string_view MediaType::parameter(std::string_view name) const {
  const auto at = std::find_if(parameters.begin(), parameters.end(),
                               [name](const auto& parameter) { return parameter.first == name; });
  return at == parameters.end() ? std::string_view() : at->second;
}

std::vector<MediaType> media_types(std::string_view accept) {
  std::vector<MediaType> types;
  while (!accept.empty()) {
    std::string_view rest = take(accept, ',');
    MediaType type{take(rest, ';'), {}};
    while (!rest.empty()) {
      std::string_view value = take(rest, ';');
      const std::string_view name = take(value, '=');
      type.parameters.emplace_back(name, value);
    }
    if (!type.type.empty()) types.push_back(std::move(type));
  }
  return types;
}

}  // namespace kube::server
