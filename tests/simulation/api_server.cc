#include "tests/simulation/api_server.hh"

#include <cstdlib>
#include <utility>
#include <vector>

#include "kube/model/json_text.hh"

namespace trainer::simulation {
namespace {

using kube::Json;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (end != 0) parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain +=
          static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

void read_query(Target& target, std::string_view query) {
  for (const auto pair : split(query, '&')) {
    const auto at = pair.find('=');
    const auto name = pair.substr(0, at);
    const std::string value = decoded(at == std::string_view::npos ? "" : pair.substr(at + 1));
    if (name == "watch") target.is_watch = value == "true";
    if (name == "force") target.is_forced = value == "true";
    if (name == "resourceVersion") target.version = std::atoll(value.c_str());
    if (name == "timeoutSeconds") target.timeout_seconds = std::atoi(value.c_str());
    if (name == "labelSelector") target.label = value;
  }
}

Answer list(const ApiStore& store, const Target& target) {
  Json items = Json::array();
  for (const auto& [key, object] : store.all(target.resource->plural)) {
    if (!target.key.ns.empty() && key.ns != target.key.ns) continue;
    if (is_selected(target, *object)) items.push_back(*object);
  }
  Json metadata = Json::object({{"resourceVersion", std::to_string(store.version())}});
  Json body = Json::object({{"apiVersion", target.resource->api_version()}});
  body.set("kind", target.resource->kind + "List").set("metadata", std::move(metadata));
  body.set("items", std::move(items));
  return {200, std::move(body)};
}

Answer read(const ApiStore& store, const Target& target) {
  if (target.key.name.empty()) return list(store, target);
  const Object object = store.find(target.resource->plural, target.key);
  if (object) return {200, *object};
  return refusal(404, "NotFound",
                 target.resource->plural + " \"" + target.key.to_string() + "\" not found");
}

}  // namespace

Target parse_target(const ApiStore& store, std::string_view text) {
  Target target;
  const auto question = text.find('?');
  if (question != std::string_view::npos) read_query(target, text.substr(question + 1));
  auto parts = split(text.substr(0, question), '/');
  // "api/v1" or "apis/GROUP/VERSION" in front.
  const std::size_t prefix = !parts.empty() && parts.front() == "api" ? 2 : 3;
  if (parts.size() <= prefix) return target;
  parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(prefix));
  if (parts.front() == "namespaces" && parts.size() > 2) {
    target.key.ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  target.resource = store.find_kind(parts[0]);
  if (parts.size() > 1) target.key.name = parts[1];
  if (parts.size() > 2) target.subresource = parts[2];
  return target;
}

bool is_selected(const Target& target, const Json& object) {
  if (target.label.empty()) return true;
  const Json* labels = object.find_path({"metadata", "labels"});
  return labels && labels->find(target.label);
}

Answer handle(ApiStore& store, const kube::HttpRequest& request) {
  const Target target = parse_target(store, request.target);
  if (!target.resource) return refusal(404, "NotFound", "404 page not found");
  if (request.method == "GET") return read(store, target);
  auto body = kube::parse_json(request.body);
  if (!body) return refusal(400, "BadRequest", body.error().message);
  if (request.method == "POST") {
    return store.create(Actor::kController, *target.resource, std::move(*body));
  }
  if (request.method == "DELETE") {
    return store.remove(Actor::kController, *target.resource, target.key, *body);
  }
  if (request.content_type == "application/merge-patch+json") {
    return store.merge(Actor::kController, *target.resource, target.key, *body, target.subresource);
  }
  if (request.content_type == "application/apply-patch+yaml") {
    return store.apply(Actor::kController, *target.resource, target.key, std::move(*body),
                       target.is_forced);
  }
  return refusal(415, "UnsupportedMediaType", request.content_type);
}

}  // namespace trainer::simulation
