// A CustomResourceDefinition describes these kinds: this project's, and those of others.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "local/kinds/kinds.hh"

namespace trainer::local {
namespace {

using kube::server::ServedKinds;

std::vector<std::string> texts(const Json& object, std::string_view member) {
  std::vector<std::string> found;
  for (const Json& text : object.get_array(member))
    if (text.is_string()) found.push_back(text.as_string());
  return found;
}

std::vector<kube::server::Column> read_columns(const Json& version) {
  std::vector<kube::server::Column> columns;
  for (const Json& column : version.get_array("additionalPrinterColumns"))
    columns.push_back(
        {std::string(column.get_string("name")), std::string(column.get_string("type")),
         std::string(column.get_string("jsonPath")), std::string(column.get_string("description")),
         static_cast<int>(column.get_int("priority"))});
  return columns;
}

ServedKind read_version(const Json& crd, const Json& version) {
  const Json& spec = crd.get("spec");
  const Json& names = spec.get("names");
  const Json& subresources = version.get("subresources");
  ServedKind kind;
  kind.resource = {std::string(spec.get_string("group")), std::string(version.get_string("name")),
                   std::string(names.get_string("plural")), std::string(names.get_string("kind")),
                   spec.get_string("scope") == "Namespaced"};
  kind.singular = names.get_string("singular");
  kind.short_names = texts(names, "shortNames");
  kind.categories = texts(names, "categories");
  kind.columns = read_columns(version);
  kind.has_status = subresources.find("status") != nullptr;
  if (const Json* scale = subresources.find("scale"))
    kind.scale = {std::string(scale->get_string("specReplicasPath")),
                  std::string(scale->get_string("statusReplicasPath")),
                  std::string(scale->get_string("labelSelectorPath"))};
  auto schema = std::make_shared<wire::Schema>();
  schema->document = version.get("schema").get("openAPIV3Schema");
  use_schema(kind, std::move(schema));
  return kind;
}

// The stored version comes first.
void put_stored_first(ServedKinds& kinds, std::string_view stored) {
  std::stable_partition(kinds.begin(), kinds.end(), [stored](const ServedKind& kind) {
    return kind.resource.version == stored;
  });
}

}  // namespace

ServedKinds kinds_of_crd(const Json& crd) {
  ServedKinds kinds;
  std::string stored;
  for (const Json& version : crd.get("spec").get_array("versions")) {
    if (version.get_bool("storage")) stored = version.get_string("name");
    if (version.get_bool("served")) kinds.push_back(read_version(crd, version));
  }
  put_stored_first(kinds, stored);
  return kinds;
}

ServedKinds served_versions(const ApiKind& kind) {
  // Each part is used except the schemas, which keep their references and have predicates for CEL
  // rules.
  Json crd = custom_resource_definition(kind);
  for (Json& version : crd["spec"]["versions"].as_array()) version.erase("schema");
  ServedKinds kinds = kinds_of_crd(crd);
  for (ServedKind& served : kinds)
    for (const KindVersion& version : kind.versions) {
      if (version.name != served.resource.version) continue;
      use_schema(served, std::make_shared<wire::Schema>(version.make_schema()));
      served.target_of = [](const Json& schema) {
        return KubernetesTypes::instance().target_of(schema);
      };
    }
  return kinds;
}

}  // namespace trainer::local
