#include "api/api.hh"
#include "api/schema/kinds.hh"

namespace trainer {
namespace {

using kube::Json;

Json names_of(const kube::Resource& resource) {
  std::string singular = resource.kind;
  for (char& c : singular)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return Json::object({{"kind", resource.kind},
                       {"listKind", resource.kind + "List"},
                       {"plural", resource.plural},
                       {"singular", singular}});
}

Json columns_of(const ServedKind& kind) {
  Json::Array columns;
  for (const PrinterColumn& column : kind.columns) {
    Json out =
        Json::object({{"name", column.name}, {"type", column.type}, {"jsonPath", column.path}});
    if (!column.description.empty()) out.set("description", column.description);
    if (column.priority > 0) out.set("priority", column.priority);
    columns.push_back(std::move(out));
  }
  return columns;
}

Json definition_of(const ServedKind& kind) {
  const kube::Resource& resource = kind.resource;
  Json version = Json::object({{"name", resource.version}, {"served", true}, {"storage", true}});
  version["schema"].set("openAPIV3Schema", KubernetesTypes::instance().expand(kind.make_schema()));
  if (kind.has_status) version["subresources"].set("status", Json::object());
  if (!kind.columns.empty()) version.set("additionalPrinterColumns", columns_of(kind));
  return Json::object({
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", Json::object({{"name", resource.plural + "." + resource.group}})},
      {"spec", Json::object({{"group", resource.group},
                             {"names", names_of(resource)},
                             {"scope", resource.namespaced ? "Namespaced" : "Cluster"},
                             {"versions", Json::array({version})}})},
  });
}

}  // namespace

std::vector<Json> custom_resource_definitions() {
  std::vector<Json> definitions;
  for (const ServedKind& kind : served_kinds()) definitions.push_back(definition_of(kind));
  return definitions;
}

}  // namespace trainer
