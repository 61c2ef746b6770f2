#include "api/schema/kinds.hh"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "api/describe/jobset.hh"
#include "api/describe/optimization_job.hh"
#include "api/describe/runtime.hh"
#include "api/describe/schema_builder.hh"
#include "api/describe/trainjob.hh"
#include "api/schema/kubernetes_types.hh"

namespace trainer {
namespace {

constexpr PrinterColumn kAge{"Age", "date", ".metadata.creationTimestamp"};

template <class T>
kube::Json root_schema() {
  kube::Json schema = wire::schema_of<T>();
  for (const char* name : {"apiVersion", "kind"})
    schema["properties"].set(name, wire::scalar_schema("string"));
  return schema;
}

std::vector<ServedKind> make_kinds() {
  std::vector<ServedKind> kinds;
  kinds.push_back(
      {.resource = {"trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", true},
       .columns = {{"State", "string", ".status.phase", "Where the job stands"},
                   {"Nodes", "string", ".status.nodes.summary", "Training nodes that run, of all"},
                   {"Restarts", "integer", ".status.restarts", "Restarts of all nodes together"},
                   {"Progress", "integer", ".status.trainerStatus.progressPercentage",
                    "Per cent, as the training code reports it"},
                   {"Runtime", "string", ".spec.runtimeRef.name", "The blueprint"},
                   kAge,
                   {"Reason", "string", ".status.reason", "Why the job stands there", 1}},
       .make_schema = root_schema<TrainJob>});
  kinds.push_back({.resource = {"trainer.kubeflow.org", "v1alpha1", "trainingruntimes",
                                "TrainingRuntime", true},
                   .has_status = false,
                   .columns = {},
                   .make_schema = root_schema<Runtime>});
  kinds.push_back({.resource = {"trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes",
                                "ClusterTrainingRuntime", false},
                   .has_status = false,
                   .columns = {},
                   .make_schema = root_schema<Runtime>});
  kinds.push_back({.resource = {"trainer.kubeflow.org", "v1alpha1", "optimizationjobs",
                                "OptimizationJob", true},
                   .columns = {},
                   .make_schema = root_schema<OptimizationJob>});
  kinds.push_back(
      {.resource = {"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true},
       .columns = {{"TerminalState", "string", ".status.terminalState", "Final state of JobSet"},
                   {"Restarts", "string", ".status.restarts", "Number of restarts"},
                   {"Completed", "string", ".status.conditions[?(@.type==\"Completed\")].status"},
                   {"Suspended", "string", ".spec.suspend", "JobSet suspended"},
                   {"Age", "date", ".metadata.creationTimestamp", "Time this JobSet was created"}},
       .make_schema = root_schema<JobSet>});
  return kinds;
}

}  // namespace

const std::vector<ServedKind>& served_kinds() {
  static const std::vector<ServedKind> kinds = make_kinds();
  return kinds;
}

const kube::Json* find_schema(std::string_view kind) {
  static const std::map<std::string, kube::Json, std::less<>> schemas = [] {
    std::map<std::string, kube::Json, std::less<>> made;
    for (const ServedKind& served : served_kinds())
      made.emplace(served.resource.kind, served.make_schema());
    return made;
  }();
  const auto at = schemas.find(kind);
  return at == schemas.end() ? nullptr : &at->second;
}

KubernetesTypes::KubernetesTypes() : types_(std::move(read_kubernetes_types()["types"])) {}

const KubernetesTypes& KubernetesTypes::instance() {
  static const KubernetesTypes types;
  return types;
}

const kube::Json* KubernetesTypes::target_of(const kube::Json& schema) const {
  const std::string_view reference = schema.get_string("$ref");
  if (reference.empty()) return nullptr;
  const kube::Json* target = types_.find(reference.substr(2));  // "#/NAME"
  if (target == nullptr)
    throw std::logic_error("api/schema/kubernetes.json lacks " + std::string(reference));
  return target;
}

kube::Json KubernetesTypes::expand(const kube::Json& schema) const {
  kube::Json out;
  if (const kube::Json* target = target_of(schema)) {
    out = expand(*target);
    for (const auto& [name, value] : schema.as_object())
      if (name != "$ref") out.set(name, value);
    return out;
  }
  out = schema;
  if (kube::Json* properties = out.find("properties"))
    for (auto& [name, property] : properties->as_object()) property = expand(property);
  for (const char* inner : {"items", "additionalProperties"})
    if (kube::Json* found = out.find(inner)) *found = expand(*found);
  return out;
}

}  // namespace trainer
