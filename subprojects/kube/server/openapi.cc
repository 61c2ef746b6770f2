#include "kube/server/openapi.hh"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"

namespace kube::server {
namespace {

constexpr std::string_view kObjectMetaSchema = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

// Returns "api/v1" or "apis/batch/v1".
std::string path_of(const Resource& resource) {
  return (resource.group.empty() ? "api/" : "apis/") + resource.api_version();
}

// Returns "org.kubeflow.trainer.v1alpha1.TrainJob".
std::string schema_name(const Resource& resource) {
  std::string name;
  const std::string group = resource.group.empty() ? "core.api.k8s.io" : resource.group;
  std::string_view rest = group;
  while (!rest.empty()) {
    const std::size_t dot = rest.rfind('.');
    name += std::string(rest.substr(dot == rest.npos ? 0 : dot + 1)) + ".";
    rest = rest.substr(0, dot == rest.npos ? 0 : dot);
  }
  return name + resource.version + "." + resource.kind;
}

Json reference(std::string_view schema) {
  return Json::object({{"$ref", "#/components/schemas/" + std::string(schema)}});
}

Json kind_of(const Resource& resource) {
  return Json::object(
      {{"group", resource.group}, {"kind", resource.kind}, {"version", resource.version}});
}

Json text_schema(std::string_view description) {
  return Json::object({{"type", "string"}, {"description", description}});
}

Json metadata_schema() {
  const Json text = Json::object({{"type", "string"}});
  const Json time = Json::object({{"type", "string"}, {"format", "date-time"}});
  const Json number = Json::object({{"type", "integer"}, {"format", "int64"}});
  const Json texts = Json::object({{"type", "object"}, {"additionalProperties", text}});
  const auto list = [](Json items) {
    return Json::object({{"type", "array"}, {"items", std::move(items)}});
  };
  const Json open = Json::object({{"type", "object"}});
  Json properties = Json::object({{"annotations", texts},
                                  {"creationTimestamp", time},
                                  {"deletionGracePeriodSeconds", number},
                                  {"deletionTimestamp", time},
                                  {"finalizers", list(text)},
                                  {"generateName", text},
                                  {"generation", number},
                                  {"labels", texts},
                                  {"managedFields", list(open)},
                                  {"name", text},
                                  {"namespace", text},
                                  {"ownerReferences", list(open)},
                                  {"resourceVersion", text},
                                  {"selfLink", text},
                                  {"uid", text}});
  return Json::object({{"type", "object"},
                       {"description", "Metadata that every object has."},
                       {"properties", std::move(properties)}});
}

// Returns the schema with each type in the place of the reference to it.
Json expanded(const ServedKind& kind, const Json& schema) {
  const Json* target = kind.target_of ? kind.target_of(schema) : nullptr;
  Json out = target == nullptr ? schema : expanded(kind, *target);
  if (target != nullptr) {
    for (const auto& [name, value] : schema.as_object())
      if (name != "$ref") out.set(name, value);
    return out;
  }
  if (Json* properties = out.find("properties"))
    for (auto& [name, property] : properties->as_object()) property = expanded(kind, property);
  for (const char* inner : {"items", "additionalProperties"})
    if (Json* found = out.find(inner)) *found = expanded(kind, *found);
  return out;
}

Json schema_of(const ServedKind& kind) {
  Json schema = kind.schema ? expanded(kind, *kind.schema) : Json::object({{"type", "object"}});
  if (!kind.schema) schema.set("x-kubernetes-preserve-unknown-fields", true);
  Json& properties = schema["properties"];
  properties.set("apiVersion", text_schema("The group and version of the object's kind."));
  properties.set("kind", text_schema("The object's kind, in CamelCase."));
  properties.set("metadata",
                 Json::object({{"description", "Metadata that every object has."},
                               {"allOf", Json::array({reference(kObjectMetaSchema)})}}));
  return schema.set("x-kubernetes-group-version-kind", Json::array({kind_of(kind.resource)}));
}

Json parameter(std::string_view name, std::string_view type, std::string_view description) {
  return Json::object({{"name", name},
                       {"in", "query"},
                       {"description", description},
                       {"schema", Json::object({{"type", type}, {"uniqueItems", true}})}});
}

Json parameters() {
  return Json::array({
      parameter("dryRun", "string", "All: nothing is stored."),
      parameter("fieldManager", "string", "Who is written down as the owner of the fields."),
      parameter("fieldValidation", "string",
                "What becomes of unknown and duplicate fields: Ignore, Warn or Strict."),
      parameter("force", "boolean", "Of an apply: fields of other managers are taken over."),
  });
}

Json operation(const ServedKind& kind, std::string_view action) {
  const Json content = Json::object({{"schema", reference(schema_name(kind.resource))}});
  const Json answer = Json::object(
      {{"description", "OK"}, {"content", Json::object({{"application/json", content}})}});
  Json out = Json::object({{"responses", Json::object({{"200", answer}})},
                           {"x-kubernetes-action", action},
                           {"x-kubernetes-group-version-kind", kind_of(kind.resource)}});
  if (action != "patch") return out;
  const Json patch = Json::object({{"schema", Json::object({{"type", "object"}})}});
  Json forms = Json::object({{"application/apply-patch+yaml", patch},
                             {"application/json-patch+json", patch},
                             {"application/merge-patch+json", patch}});
  out.set("parameters", parameters());
  return out.set("requestBody", Json::object({{"content", std::move(forms)}, {"required", true}}));
}

std::string item_path(const Resource& resource) {
  const std::string_view ns = resource.namespaced ? "/namespaces/{namespace}/" : "/";
  return "/" + path_of(resource) + std::string(ns) + resource.plural + "/{name}";
}

}  // namespace

std::optional<Json> openapi_document(const ServedKinds& kinds, std::string_view group_version) {
  Json schemas, paths;
  for (const ServedKind& kind : kinds) {
    if (path_of(kind.resource) != group_version) continue;
    schemas.set(schema_name(kind.resource), schema_of(kind));
    paths.set(item_path(kind.resource),
              Json::object({{"get", operation(kind, "get")}, {"patch", operation(kind, "patch")}}));
  }
  if (schemas.is_null()) return std::nullopt;
  schemas.set(kObjectMetaSchema, metadata_schema());
  return Json::object({{"openapi", "3.0.0"},
                       {"info", Json::object({{"title", "Kubernetes"}, {"version", "v1"}})},
                       {"paths", std::move(paths)},
                       {"components", Json::object({{"schemas", std::move(schemas)}})}});
}

Json openapi_index(const ServedKinds& kinds) {
  Json paths = Json::object();
  for (const ServedKind& kind : kinds) {
    const std::string path = path_of(kind.resource);
    if (paths.find(path) != nullptr) continue;
    const auto document = openapi_document(kinds, path);
    const std::string hash = sha256_hex(print_json(*document));
    paths.set(path, Json::object({{"serverRelativeURL", "/openapi/v3/" + path + "?hash=" + hash}}));
  }
  return Json::object({{"paths", std::move(paths)}});
}

}  // namespace kube::server
