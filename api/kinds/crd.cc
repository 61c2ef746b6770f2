#include <string>

#include "api/kinds/kinds.hh"
#include "api/schema/kubernetes_types.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

using kube::Json;

Json names_of(const kube::Resource& resource) {
  return Json::object({{"kind", resource.kind},
                       {"listKind", resource.kind + "List"},
                       {"plural", resource.plural},
                       {"singular", kube::to_lower(resource.kind)}});
}

Json columns_of(const KindVersion& version) {
  Json::Array columns;
  for (const PrinterColumn& column : version.columns) {
    Json out =
        Json::object({{"name", column.name}, {"type", column.type}, {"jsonPath", column.path}});
    if (!column.description.empty()) out.set("description", column.description);
    if (column.priority > 0) out.set("priority", column.priority);
    columns.push_back(std::move(out));
  }
  return columns;
}

Json scale_of(const ScaleSubresource& scale) {
  Json out = Json::object({{"specReplicasPath", scale.spec_replicas_path},
                           {"statusReplicasPath", scale.status_replicas_path}});
  if (!scale.label_selector_path.empty()) out.set("labelSelectorPath", scale.label_selector_path);
  return out;
}

// Returns the schema with what `kubectl explain` can say about each field: those of the described
// structs have their texts.
Json described(const Json& schema) {
  Json out = KubernetesTypes::instance().expand(schema, read_kubernetes_descriptions());
  Json& properties = out["properties"];  // the API server accepts no description of metadata
  properties["apiVersion"].set("description", "Group and version of the kind.");
  properties["kind"].set("description", "The kind.");
  return out;
}

Json version_of(const KindVersion& version) {
  Json out = Json::object(
      {{"name", version.name}, {"served", version.is_served}, {"storage", version.is_stored}});
  out["schema"].set("openAPIV3Schema", described(version.make_schema().document));
  if (version.has_status) out["subresources"].set("status", Json::object());
  if (version.scale) out["subresources"].set("scale", scale_of(*version.scale));
  if (!version.columns.empty()) out.set("additionalPrinterColumns", columns_of(version));
  return out;
}

}  // namespace

Json custom_resource_definition(const ApiKind& kind) {
  const kube::Resource& resource = kind.resource;
  Json::Array versions;
  for (const KindVersion& version : kind.versions) versions.push_back(version_of(version));
  return Json::object({
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", Json::object({{"name", resource.plural + "." + resource.group}})},
      {"spec", Json::object({{"group", resource.group},
                             {"names", names_of(resource)},
                             {"scope", resource.namespaced ? "Namespaced" : "Cluster"},
                             {"versions", std::move(versions)}})},
  });
}

}  // namespace trainer
