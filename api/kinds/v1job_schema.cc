#include "api/kinds/v1job_schema.hh"

#include <algorithm>
#include <utility>

#include "api/describe/v1job.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

Json only(const Json& schema, const std::vector<std::string_view>& names) {
  Json::Object kept;
  for (const auto& [name, property] : schema.get_object("properties"))
    if (std::find(names.begin(), names.end(), name) != names.end()) kept[name] = property;
  return Json(schema).set("properties", std::move(kept));
}

}  // namespace

wire::Schema make_job_schema(const JobSchemaMembers& members) {
  wire::Schema schema;
  Json roles = wire::object_schema();
  roles.set("description", "The roles of the job, by name.");
  roles.set("additionalProperties", wire::schema_of<ReplicaSpec>(schema.predicates));
  std::vector<std::string_view> names = members.spec;
  names.push_back("runPolicy");
  Json spec = only(wire::schema_of<JobSpec>(schema.predicates), names);
  Json& properties = spec["properties"];
  if (Json* elastic = properties.find("elasticPolicy")) {
    if (const auto& kept = members.elastic_policy; !kept.empty()) *elastic = only(*elastic, kept);
    wire::SchemaAttributes((*elastic)["properties"]["metrics"], schema.predicates)
        .kubernetes("MetricSpec");
  }
  Json& policy = properties["runPolicy"]["properties"]["schedulingPolicy"];
  wire::SchemaAttributes(policy["properties"]["minResources"]["additionalProperties"],
                         schema.predicates)
      .kubernetes("Quantity");
  properties.set(members.replica_specs, std::move(roles));
  spec.set("required", Json::array({members.replica_specs}));
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

}  // namespace trainer::v1
