#include "api/describe/v1job.hh"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "api/kinds/kinds.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

using kube::Json;

// A kind of V1 jobs, as its CRD differs from the others (Training Operator,
// manifests/base/crds).
struct Row {
  std::string_view kind;
  std::string_view replica_specs;
  std::array<std::string_view, 3> members = {};  // of the spec, besides runPolicy and the roles
  std::string_view scale_path = {};              // "": no subresource `scale`
  bool is_age_first = false;                     // of the two columns
};

constexpr std::array<Row, 6> kRows{{
    {"PyTorchJob",
     "pytorchReplicaSpecs",
     {"elasticPolicy", "nprocPerNode"},
     ".spec.pytorchReplicaSpecs.Worker.replicas"},
    {"TFJob", "tfReplicaSpecs", {"successPolicy", "enableDynamicWorker"}},
    {"XGBoostJob", "xgbReplicaSpecs"},
    {"PaddleJob",
     "paddleReplicaSpecs",
     {"elasticPolicy"},
     ".spec.paddleReplicaSpecs.Worker.replicas"},
    {"JAXJob", "jaxReplicaSpecs", {}, ".spec.jaxReplicaSpecs.Worker.replicas"},
    {"MPIJob", "mpiReplicaSpecs", {"slotsPerWorker", "mainContainer", "cleanPodPolicy"}, {}, true},
}};

Json only(const Json& schema, std::span<const std::string_view> names) {
  Json::Object kept;
  for (const auto& [name, property] : schema.get_object("properties"))
    if (std::find(names.begin(), names.end(), name) != names.end()) kept[name] = property;
  return Json(schema).set("properties", std::move(kept));
}

wire::Schema schema_of_row(const Row& row) {
  wire::Schema schema;
  Json roles = wire::object_schema();
  roles.set("description", "The roles of the job, by name.");
  roles.set("additionalProperties", wire::schema_of<v1::ReplicaSpec>(schema.predicates));
  std::vector<std::string_view> members(row.members.begin(), row.members.end());
  members.push_back("runPolicy");
  Json spec = only(wire::schema_of<v1::JobSpec>(schema.predicates), members);
  Json& properties = spec["properties"];
  constexpr std::array<std::string_view, 4> kOfPaddle{"minReplicas", "maxReplicas", "maxRestarts",
                                                      "metrics"};
  if (row.kind == "PaddleJob")
    properties.set("elasticPolicy", only(properties.get("elasticPolicy"), kOfPaddle));
  if (Json* elastic = properties.find("elasticPolicy"))
    wire::SchemaAttributes((*elastic)["properties"]["metrics"], schema.predicates)
        .kubernetes("MetricSpec");
  Json& policy = properties["runPolicy"]["properties"]["schedulingPolicy"];
  wire::SchemaAttributes(policy["properties"]["minResources"]["additionalProperties"],
                         schema.predicates)
      .kubernetes("Quantity");
  properties.set(row.replica_specs, std::move(roles));
  spec.set("required", Json::array({row.replica_specs}));
  spec.set("description", "What shall run.");
  Json status = wire::schema_of<v1::JobStatus>(schema.predicates);
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

template <std::size_t kRow>
wire::Schema make_schema() {
  return schema_of_row(kRows[kRow]);
}

template <std::size_t kRow>
ApiKind make_kind() {
  const Row& row = kRows[kRow];
  const std::string singular = kube::to_lower(row.kind);
  // The type of the last condition, whatever its status is.
  std::vector<PrinterColumn> columns{{"State", "string", ".status.conditions[-1:].type"},
                                     kAgeColumn};
  if (row.is_age_first) std::swap(columns.front(), columns.back());
  KindVersion version{
      .name = "v1", .make_schema = make_schema<kRow>, .columns = std::move(columns)};
  if (!row.scale_path.empty()) {
    version.scale = {row.scale_path, ".status.replicaStatuses.Worker.active",
                     ".status.replicaStatuses.Worker.selector"};
  }
  return {{"kubeflow.org", "v1", singular + "s", std::string(row.kind), true},
          {std::move(version)}};
}

}  // namespace

const std::vector<ApiKind>& v1job_kinds() {
  static const std::vector<ApiKind> kinds{make_kind<0>(), make_kind<1>(), make_kind<2>(),
                                          make_kind<3>(), make_kind<4>(), make_kind<5>()};
  return kinds;
}

}  // namespace trainer
