// These are kinds of other groups; no controller of local mode acts on most of them.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/server/decoding.hh"
#include "local/kinds/cells.hh"
#include "local/kinds/kinds.hh"

namespace trainer::local {
namespace {

using kube::Time;

// kube-apiserver prints kinds without a printer in this form: with the time of creation instead of
// the age.
Json created_cells(const Json& object, Time) {
  return Json::array({name_of(object), object.get("metadata").get("creationTimestamp")});
}

Json lease_cells(const Json& lease, Time now) {
  return Json::array(
      {name_of(lease), lease.get("spec").get_string("holderIdentity"), age_of(lease, now)});
}

Json priority_class_cells(const Json& priority, Time now) {
  return Json::array({name_of(priority), priority.get_int("value"),
                      priority.get_bool("globalDefault"), age_of(priority, now),
                      priority.get_string("preemptionPolicy")});
}

std::string subjects(const Json& binding, std::string_view kind) {
  std::vector<std::string> names;
  for (const Json& subject : binding.get_array("subjects")) {
    if (subject.get_string("kind") != kind) continue;
    const std::string ns(subject.get_string("namespace"));
    names.push_back((ns.empty() ? "" : ns + "/") + std::string(subject.get_string("name")));
  }
  return join(names, ", ");
}

Json role_binding_cells(const Json& binding, Time now) {
  const Json& role = binding.get("roleRef");
  return Json::array({name_of(binding),
                      fmt::format("{}/{}", role.get_string("kind"), role.get_string("name")),
                      age_of(binding, now), subjects(binding, "User"), subjects(binding, "Group"),
                      subjects(binding, "ServiceAccount")});
}

// No controller scales here, so current values of metrics are unknown.
Json autoscaler_cells(const Json& scaler, Time now) {
  const Json& spec = scaler.get("spec");
  const Json& target = spec.get("scaleTargetRef");
  return Json::array({name_of(scaler),
                      fmt::format("{}/{}", target.get_string("kind"), target.get_string("name")),
                      spec.get_array("metrics").empty() ? "<none>" : "<unknown>",
                      std::to_string(spec.get_int("minReplicas")), spec.get_int("maxReplicas"),
                      scaler.get("status").get_int("currentReplicas"), age_of(scaler, now)});
}

void set_autoscaler_defaults(Json& scaler) {
  if (Json* spec = scaler.find("spec")) set_default(*spec, "minReplicas", 1);
}

void set_priority_defaults(Json& priority) {
  set_default(priority, "value", 0);
  set_default(priority, "preemptionPolicy", "PreemptLowerPriority");
}

void set_role_ref_defaults(Json& binding) {
  if (Json* role = binding.find("roleRef"))
    set_default(*role, "apiGroup", "rbac.authorization.k8s.io");
}

void set_crd_defaults(Json& crd) {
  const auto condition = [](std::string_view type, std::string_view reason,
                            std::string_view message) {
    return Json::object(
        {{"type", type}, {"status", "True"}, {"reason", reason}, {"message", message}});
  };
  Json stored = Json::array();
  for (const Json& version : crd.get("spec").get_array("versions"))
    if (version.get_bool("storage")) stored.push_back(version.get("name"));
  set_default(crd["status"], "acceptedNames", Json(crd.get("spec").get("names")));
  set_default(crd["status"], "storedVersions", std::move(stored));
  set_default(crd["status"], "conditions",
              Json::array({condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                           condition("Established", "InitialNamesAccepted",
                                     "the initial names have been accepted")}));
}

// Checks only the types that set_crd_defaults() relies on: the whole schema of a
// CustomResourceDefinition refers to itself.
std::string crd_problem(const Json& crd) {
  static const KubernetesTypes kTypes(*kube::parse_json(R"({
    "CustomResourceDefinition": {"type": "object", "properties": {
      "spec": {"$ref": "#/CustomResourceDefinitionSpec"},
      "status": {"$ref": "#/CustomResourceDefinitionStatus"}}},
    "CustomResourceDefinitionSpec": {"type": "object", "properties": {}},
    "CustomResourceDefinitionStatus": {"type": "object", "properties": {}}})"));
  return kube::server::decoding_problem(crd, Json::object({{"$ref", "#/CustomResourceDefinition"}}),
                                        {[](const Json& part) { return kTypes.target_of(part); }});
}

}  // namespace

std::vector<Builtin> other_kinds() {
  return {
      {.resource = kube::kHorizontalPodAutoscalers,
       .short_names = {"hpa"},
       .rules = {set_autoscaler_defaults},
       .columns = "Name,Reference,Targets,MinPods,MaxPods,Replicas,Age",
       .cells = autoscaler_cells,
       .has_status = true,
       .is_of_all = true},
      {.resource = kube::kRoles, .columns = "Name,Created At", .cells = created_cells},
      {.resource = kube::kRoleBindings,
       .rules = {set_role_ref_defaults},
       .columns = "Name,Role,Age,+Users,+Groups,+ServiceAccounts",
       .cells = role_binding_cells},
      {.resource = kube::kLeases, .columns = "Name,Holder,Age", .cells = lease_cells},
      {.resource = kube::kPriorityClasses,
       .short_names = {"pc"},
       .rules = {set_priority_defaults},
       .columns = "Name,Value,Global-Default,Age,+PreemptionPolicy",
       .cells = priority_class_cells,
       .has_generation = true},
  };
}

// A definition is stored without a check; CustomKinds serves the kind that it defines.
ServedKind crd_kind() {
  ServedKind kind;
  kind.resource = kube::kCustomResourceDefinitions;
  kind.singular = "customresourcedefinition";
  kind.short_names = {"crd", "crds"};
  kind.categories = {"api-extensions"};
  kind.columns = columns_of("Name,Created At");
  kind.has_status = true;
  kind.cells = created_cells;
  kind.decoding_problem = crd_problem;
  kind.set_defaults = set_crd_defaults;
  kind.check = check_definition;
  return kind;
}

}  // namespace trainer::local
