#include "kube/tests/server_world.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/resources.hh"
#include "kube/server/decoding.hh"
#include "kube/tests/catch.hh"

namespace kube::test {
namespace {

using server::ServedKind;

std::shared_ptr<const Json> schema(std::string_view text) {
  return std::make_shared<const Json>(json(text));
}

ServedKind kind(const Resource& resource, bool has_status) {
  ServedKind served;
  served.resource = resource;
  served.has_status = has_status;
  return served;
}

ServedKind config_maps() {
  ServedKind served = kind(kConfigMaps, false);
  served.has_generation = false;
  served.schema = schema(R"({'type': 'object', 'title': 'ConfigMap', 'properties': {
    'apiVersion': {'type': 'string'}, 'kind': {'type': 'string'}, 'metadata': {'type': 'object'},
    'immutable': {'type': 'boolean'},
    'data': {'type': 'object', 'additionalProperties': {'type': 'string'}},
    'binaryData': {'type': 'object', 'additionalProperties': {
      'type': 'string', 'format': 'byte'}}}})");
  served.merge_keys = std::make_shared<const MergeKeys>();
  served.decoding_problem = [schema = served.schema](const Json& map) {
    return server::decoding_problem(map, *schema, {});
  };
  return served;
}

// The spec.replicas that a Widget has by default.
void set_widget_defaults(Json& widget) {
  Json& spec = widget["spec"];
  if (spec.is_null()) spec = Json::object();
  if (spec.is_object() && !spec.find("replicas")) spec.set("replicas", 1);
}

FieldErrors check_widget(const Json& widget, const Json* before) {
  FieldErrors errors;
  const Json& size = widget.get("spec").get("size");
  if (size.is_int() && size.as_int() < 0)
    errors.push_back(
        invalid("spec.size", size, std::string("should be greater than or equal to 0")));
  if (before && before->get("spec").get("labels") != widget.get("spec").get("labels") &&
      before->get("spec").get("labels").find("fixed"))
    errors.push_back(forbidden("spec.labels", "they are fixed"));
  return errors;
}

ServedKind widgets() {
  ServedKind served = kind({"example.com", "v1", "widgets", "Widget", true}, true);
  served.scale = server::ScalePaths{".spec.replicas", ".status.replicas", ".status.selector"};
  served.schema = schema(R"({'type': 'object', 'properties': {
    'apiVersion': {'type': 'string'}, 'kind': {'type': 'string'}, 'metadata': {'type': 'object'},
    'spec': {'type': 'object', 'properties': {
      'size': {'type': 'integer'}, 'replicas': {'type': 'integer'},
      'parts': {'type': 'array', 'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        'items': {'type': 'object', 'properties': {'name': {'type': 'string'},
          'color': {'type': 'string'}, 'count': {'type': 'integer'}}}},
      'ports': {'type': 'array', 'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['port', 'protocol'],
        'items': {'type': 'object', 'properties': {'port': {'type': 'integer'},
          'protocol': {'type': 'string', 'default': 'TCP'}}}},
      'tags': {'type': 'array', 'x-kubernetes-list-type': 'set', 'items': {'type': 'string'}},
      'order': {'type': 'array', 'items': {'type': 'string'}},
      'labels': {'type': 'object', 'additionalProperties': {'type': 'string'}},
      'point': {'type': 'object', 'x-kubernetes-map-type': 'atomic', 'properties': {
        'x': {'type': 'integer'}, 'y': {'type': 'integer'}}}}},
    'status': {'type': 'object', 'properties': {'replicas': {'type': 'integer'},
      'phase': {'type': 'string'}, 'selector': {'type': 'string'}}}}})");
  served.set_defaults = set_widget_defaults;
  served.check = check_widget;
  served.unknown_fields = [](const Json& object) {
    std::vector<std::string> unknown;
    for (const auto& [name, value] : object.get_object("spec"))
      if (name == "sise" || name == "colour") unknown.push_back("spec." + name);
    return unknown;
  };
  return served;
}

server::ServedKinds all_kinds() {
  ServedKind pods = kind(kPods, true);
  pods.merge_keys = std::make_shared<const MergeKeys>(
      std::map<std::string, std::string, std::less<>>{{"spec.containers", "name"},
                                                      {"spec.containers.env", "name"},
                                                      {"metadata.finalizers", ""}});
  return {config_maps(),        kind(kSecrets, false),   std::move(pods), kind(kJobs, true),
          kind(kEvents, false), kind(kNamespaces, true), widgets()};
}

}  // namespace

Json json(std::string_view text) {
  std::string quoted(text);
  std::replace(quoted.begin(), quoted.end(), '\'', '"');
  auto value = parse_json(quoted);
  if (!value) FAIL(value.error().message << " in " << quoted);
  return std::move(*value);
}

World::World()
    : kinds(all_kinds()),
      api(kinds, store,
          {.now = [this] { return now; },
           .new_uid = [this] { return fmt::format("uid-{}", ++uids_); },
           .new_name_suffix = [this] { return fmt::format("aaaa{}", ++suffixes_); }}) {
  store.put(kNamespaces, json("{'apiVersion':'v1','kind':'Namespace',"
                              "'metadata':{'name':'n','uid':'uid-of-n'}}"));
}

server::Response World::send(std::string_view method, std::string_view target,
                             std::string_view text, std::string_view content_type) {
  server::Request request;
  request.method = method;
  request.target = target;
  request.user_agent = user_agent;
  request.content_type = text.empty() ? "" : content_type;
  if (!text.empty()) request.body = print_json(json(text));
  server::Outcome outcome = api.handle(std::move(request));
  REQUIRE(std::holds_alternative<server::Response>(outcome));
  return std::get<server::Response>(std::move(outcome));
}

server::Response World::apply(std::string_view path, std::string_view manager,
                              std::string_view text, bool is_forced) {
  return send("PATCH", fmt::format("{}?fieldManager={}&force={}", path, manager, is_forced), text,
              "application/apply-patch+yaml");
}

server::Watch World::watch(std::string_view target) {
  server::Request request;
  request.target = target;
  server::Outcome outcome = api.handle(std::move(request));
  REQUIRE(std::holds_alternative<server::Watch>(outcome));
  return std::get<server::Watch>(std::move(outcome));
}

Json World::stored(std::string_view target) {
  const server::Response response = get(target);
  return response.status == 200 ? body(response) : Json();
}

std::string World::managers(std::string_view target) {
  std::string lines;
  const Json object = stored(target);
  for (const Json& entry : object.get("metadata").get_array("managedFields")) {
    const std::string_view subresource = entry.get_string("subresource");
    lines +=
        fmt::format("{} {}{}{}: {}\n", entry.get_string("manager"), entry.get_string("operation"),
                    subresource.empty() ? "" : " ", subresource, print_json(entry.get("fieldsV1")));
  }
  std::replace(lines.begin(), lines.end(), '"', '\'');
  return lines;
}

std::string outcome(const server::Response& response) {
  const auto value = parse_json(response.body);
  if (!value) return fmt::format("{}: {}", response.status, response.body);
  if (value->get_string("kind") != "Status" || value->get_string("status") != "Failure")
    return std::to_string(response.status);
  return fmt::format("{} {}: {}", response.status, value->get_string("reason"),
                     value->get_string("message"));
}

Json body(const server::Response& response) {
  auto value = parse_json(response.body);
  if (!value) FAIL(value.error().message << " in " << response.body);
  return std::move(*value);
}

}  // namespace kube::test
