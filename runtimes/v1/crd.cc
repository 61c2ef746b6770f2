#include <algorithm>
#include <string>
#include <utility>

#include "api/describe/v1job.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

Json only(const Json& schema, const std::vector<std::string_view>& names) {
  Json::Object kept;
  for (const auto& [name, property] : schema.get_object("properties"))
    if (std::find(names.begin(), names.end(), name) != names.end()) kept[name] = property;
  return Json(schema).set("properties", std::move(kept));
}

wire::Schema make_schema(const Framework& framework) {
  wire::Schema schema;
  Json roles = wire::object_schema();
  roles.set("description", "The roles of the job, by name.");
  roles.set("additionalProperties", wire::schema_of<ReplicaSpec>(schema.predicates));
  std::vector<std::string_view> members = framework.crd.members;
  members.push_back("runPolicy");
  Json spec = only(wire::schema_of<JobSpec>(schema.predicates), members);
  Json& properties = spec["properties"];
  if (Json* elastic = properties.find("elasticPolicy")) {
    if (const auto& kept = framework.crd.elastic_members; !kept.empty())
      *elastic = only(*elastic, kept);
    wire::SchemaAttributes((*elastic)["properties"]["metrics"], schema.predicates)
        .kubernetes("MetricSpec");
  }
  Json& policy = properties["runPolicy"]["properties"]["schedulingPolicy"];
  wire::SchemaAttributes(policy["properties"]["minResources"]["additionalProperties"],
                         schema.predicates)
      .kubernetes("Quantity");
  properties.set(framework.replica_specs, std::move(roles));
  spec.set("required", Json::array({framework.replica_specs}));
  spec.set("description", "What shall run.");
  Json status = wire::schema_of<JobStatus>(schema.predicates);
  status.set("description", "What is seen of it.");
  schema.document = wire::object_schema().set(
      "properties", Json::object({{"apiVersion", wire::scalar_schema("string")},
                                  {"kind", wire::scalar_schema("string")},
                                  {"metadata", wire::object_schema()},
                                  {"spec", std::move(spec)},
                                  {"status", std::move(status)}}));
  schema.document.set("description", "A job whose pods have roles, without a Job in between.");
  return schema;
}

}  // namespace

ApiKind api_kind(const Framework& framework) {
  // The type of the last condition, whatever its status is.
  std::vector<PrinterColumn> columns{{"State", "string", ".status.conditions[-1:].type"},
                                     kAgeColumn};
  if (framework.crd.is_age_first) std::swap(columns.front(), columns.back());
  KindVersion version{.name = "v1",
                      .make_schema = [&framework] { return make_schema(framework); },
                      .columns = std::move(columns)};
  if (!framework.crd.scale_path.empty()) {
    version.scale = {framework.crd.scale_path, ".status.replicaStatuses.Worker.active",
                     ".status.replicaStatuses.Worker.selector"};
  }
  return {framework.resource, {std::move(version)}};
}

}  // namespace trainer::v1
