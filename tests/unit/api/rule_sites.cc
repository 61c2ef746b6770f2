#include "tests/unit/api/rule_sites.hh"

#include <map>

#include "api/kinds/kinds.hh"
#include "api/schema/schema_view.hh"
#include "kube/model/yaml.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::test {
namespace {

using kube::Json;

Json base_object(const kube::Resource& resource, Json spec) {
  return Json::object({{"apiVersion", resource.api_version()},
                       {"kind", resource.kind},
                       {"metadata", Json::object({{"name", "probe"}})},
                       {"spec", std::move(spec)}});
}

std::vector<RuledKind> make_kinds() {
  static const std::map<std::string, std::string> specs{
      {"TrainJob", "{runtimeRef: {name: r}}"},
      {"TrainingRuntime", "{mlPolicy: {numNodes: 1}, template: {spec: {replicatedJobs: []}}}"},
      {"ClusterTrainingRuntime",
       "{mlPolicy: {numNodes: 1}, template: {spec: {replicatedJobs: []}}}"},
      {"JobSet", "{replicatedJobs: []}"},
  };
  std::vector<RuledKind> kinds;
  for (const ApiKind& kind : api_kinds())
    kinds.push_back({kind.resource, find_schema(kind.resource.kind),
                     base_object(kind.resource, *kube::parse_yaml(specs.at(kind.resource.kind)))});
  static std::vector<wire::Schema> schemas;
  schemas.reserve(v1::frameworks().size());
  for (const v1::Framework* framework : v1::frameworks()) {
    schemas.push_back(v1::api_kind(*framework).versions[0].make_schema());
    Json spec = Json::object();
    spec.set(std::string(framework->replica_specs), Json::object());
    kinds.push_back(
        {framework->resource, &schemas.back(), base_object(framework->resource, std::move(spec))});
  }
  return kinds;
}

void find_sites(const Json& schema, const std::function<bool(std::string_view)>& is_wanted,
                std::vector<std::string>& path, std::vector<RuleSite>& found) {
  const SchemaView view(schema);
  for (const Json& rule : view.list("x-kubernetes-validations"))
    if (is_wanted(rule.get_string("rule"))) found.push_back({path, &schema, &rule});
  const auto descend = [&](const std::string& name, const Json& below) {
    path.push_back(name);
    find_sites(below, is_wanted, path, found);
    path.pop_back();
  };
  if (const Json* properties = view.find("properties"))
    for (const auto& [name, below] : properties->as_object()) descend(name, below);
  if (const Json* values = view.find("additionalProperties")) descend("a", *values);
  if (const Json* items = view.find("items")) descend("", *items);
}

}  // namespace

const std::vector<RuledKind>& ruled_kinds() {
  static const std::vector<RuledKind> kinds = make_kinds();
  return kinds;
}

std::vector<RuleSite> find_rule_sites(const RuledKind& kind,
                                      const std::function<bool(std::string_view)>& is_wanted) {
  std::vector<RuleSite> found;
  std::vector<std::string> path;
  find_sites(kind.schema->document, is_wanted, path, found);
  return found;
}

Json least_value(const Json& schema) {
  const SchemaView view(schema);
  if (const auto& names = view.list("enum"); !names.empty()) return names[0];
  if (view.text("format") == "date-time") return "2026-08-20T10:00:00Z";
  if (view.type() == "string") return "a";
  if (view.type() == "boolean") return false;
  if (view.type() == "array") {
    Json list = Json::array();
    if (view.find("minItems") != nullptr) list.push_back(least_value(*view.find("items")));
    return list;
  }
  if (view.type() != "object") return 1;
  Json object = Json::object();
  for (const Json& name : view.list("required"))
    object.set(name.as_string(), least_value(*view.member(name.as_string())));
  return object;
}

Json& reach(Json& object, const Json& root, const std::vector<std::string>& path) {
  Json* at = &object;
  const Json* schema = &root;
  for (const std::string& name : path) {
    const SchemaView view(*schema);
    schema = name.empty() ? view.find("items") : view.member(name);
    if (name.empty()) {
      if (at->as_array().empty()) at->push_back(least_value(*schema));
      at = &at->as_array()[0];
    } else {
      if (at->find(name) == nullptr) at->set(name, least_value(*schema));
      at = at->find(name);
    }
  }
  return *at;
}

}  // namespace trainer::test
