#include "kube/server/accept.hh"

#include <map>

#include "kube/model/text.hh"

namespace kube::server {
namespace {

// Takes the text before the next separator off the front, without spaces around it.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return trimmed(part);
}

}  // namespace

bool wants_form(std::string_view accept, std::string_view as, std::string_view group,
                std::string_view version) {
  while (!accept.empty()) {
    std::string_view rest = take(accept, ',');
    const std::string_view type = take(rest, ';');
    std::map<std::string_view, std::string_view> parameters;
    while (!rest.empty()) {
      std::string_view value = take(rest, ';');
      const std::string_view name = take(value, '=');
      parameters.emplace(name, value);
    }
    if (type != "application/json" && type != "application/*" && type != "*/*") continue;
    const std::string_view form = parameters["as"];
    if (form.empty()) return false;
    if (form == as && parameters["g"] == group && parameters["v"] == version) return true;
  }
  return false;
}

}  // namespace kube::server
