// Prints objects around each rule of the schemas that has a predicate, valid and invalid ones, with
// the result of check_schema(). tests/cluster/rules_test.py sends them to the API server.
//
// usage: rule_cases SEED COUNT    COUNT objects for each place with a rule
#include <cstdlib>
#include <iostream>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/api.hh"
#include "api/kinds/kinds.hh"
#include "api/schema/schema_view.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/unit/api/random_documents.hh"

namespace trainer {
namespace {

using kube::Json;

// A value with a rule: its path in an object, its schema, and the rule.
struct Site {
  std::vector<std::string> path;  // member names; "" is the first item of a list
  const Json* schema;
  const Json* rule;
};

void find_sites(const Json& schema, const wire::Predicates& predicates,
                std::vector<std::string>& path, std::vector<Site>& found) {
  const SchemaView view(schema);
  for (const Json& rule : view.list("x-kubernetes-validations"))
    if (predicates.contains(rule.get_string("rule"))) found.push_back({path, &schema, &rule});
  const auto descend = [&](const std::string& name, const Json& below) {
    path.push_back(name);
    find_sites(below, predicates, path, found);
    path.pop_back();
  };
  if (const Json* properties = view.find("properties"))
    for (const auto& [name, below] : properties->as_object()) descend(name, below);
  if (const Json* items = view.find("items")) descend("", *items);
}

Json base_object(const kube::Resource& resource) {
  static const std::map<std::string, std::string> specs{
      {"TrainJob", "{runtimeRef: {name: r}}"},
      {"TrainingRuntime", "{mlPolicy: {numNodes: 1}}"},
      {"ClusterTrainingRuntime", "{mlPolicy: {numNodes: 1}}"},
      {"JobSet", "{replicatedJobs: []}"},
      {"OptimizationJob",
       "{objectives: [{metric: m}], trainJobTemplate: {spec: {runtimeRef: {name: r}}}, "
       "parameters: [{name: p, searchSpace: {uniform: {min: '1', max: '2'}}}]}"},
  };
  return Json::object({{"apiVersion", resource.api_version()},
                       {"kind", resource.kind},
                       {"metadata", Json::object({{"name", "probe"}})},
                       {"spec", *kube::parse_yaml(specs.at(resource.kind))}});
}

// The least value that the schema accepts.
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

class Cases {
 public:
  explicit Cases(unsigned seed) : random_(seed), documents_(seed) {}

  void print(const ApiKind& kind, int count) {
    const wire::Schema& schema = *find_schema(kind.resource.kind);
    std::vector<Site> sites;
    std::vector<std::string> path;
    find_sites(schema.document, schema.predicates, path, sites);
    for (const Site& site : sites)
      for (int i = 0; i < count; ++i) {
        Json object = base_object(kind.resource);
        change(reach(object, schema.document, site.path), site);
        Json stored = object;
        apply_schema_defaults(stored);
        const kube::FieldErrors errors = check_schema(stored);
        const bool is_status = !site.path.empty() && site.path[0] == "status";
        std::cout << kube::print_json(Json::object({{"object", object},
                                                    {"rule", site.rule->get_string("rule")},
                                                    {"message", site.rule->get_string("message")},
                                                    {"subresource", is_status ? "status" : ""},
                                                    {"refusal", kube::to_string(errors)}}))
                  << "\n";
      }
  }

 private:
  static Json& reach(Json& object, const Json& root, const std::vector<std::string>& path) {
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

  void change(Json& value, const Site& site) {
    const std::string cel(site.rule->get_string("rule"));
    const std::string_view type = SchemaView(*site.schema).type();
    if (!site.path.empty() && up_to(9) == 0)
      value = up_to(1) == 0 ? Json() : documents_.anything();
    else if (type == "string")
      value = text();
    else if (type == "integer")
      value = pick({std::int64_t{-2147483648}, -1, 0, 1, 2, 1.5, 2.0, 0.0});
    else if (SchemaView(*site.schema).is_set("x-kubernetes-int-or-string"))
      value = pick({"auto", "gpu", "cpu", "Auto", "", "4", -1, 0, 1, 8, std::int64_t{2147483648}});
    else if (type == "array")
      for (int i = up_to(2); i >= 0; --i) value.push_back(pick({"node", "nodes", "", "Node", "b"}));
    else if (cel.find("self.metadata.name") != std::string::npos)
      value["metadata"].set("name", name());
    else
      change_members(value, *site.schema, cel);
  }

  // The members that the rule names.
  void change_members(Json& value, const Json& schema, const std::string& cel) {
    static const std::regex kMember("self\\.([A-Za-z]+)");
    for (std::sregex_iterator at(cel.begin(), cel.end(), kMember), end; at != end; ++at) {
      const std::string member = (*at)[1];
      const Json* below = SchemaView(schema).member(member);
      switch (below == nullptr ? 0 : up_to(5)) {
        case 0:
          value.erase(member);
          break;
        case 1:
          value.set(member, nullptr);
          break;
        case 2:
          value.set(member, least_value(*below));
          break;
        default:
          value.set(member, documents_.value(*below, member));
      }
    }
  }

  Json name() {
    return pick({"a", "job-1", "9lives", "-a", "a-", "a.b", "A", "a_b", "ab\xc3\xa9", "a--b",
                 std::string(63, 'a'), std::string(64, 'a'), std::string(63, 'a') + "-", "z9"});
  }

  Json text() {
    if (up_to(2) == 0)
      return pick({"", "trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue",
                   "kueue.x-k8s.io/multikueue ", "Kueue.x-k8s.io/multikueue", "s3://", "://x",
                   "hf://a/b", "\xc3\xa9://x", "s3://\xc3\xa9", "s3://x\n"});
    static constexpr std::string_view kCharacters = "aZ9+.-:/ \n";
    std::string out;
    for (int i = up_to(4); i > 0; --i) out += kCharacters[static_cast<std::size_t>(up_to(9))];
    if (up_to(2) > 0) out = std::string(up_to(1) == 0 ? "s" : "") + out + "://";
    for (int i = up_to(3); i > 0; --i) out += kCharacters[static_cast<std::size_t>(up_to(9))];
    return out;
  }

  Json pick(const std::vector<Json>& values) {
    return values[static_cast<std::size_t>(up_to(static_cast<int>(values.size()) - 1))];
  }
  int up_to(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }

  std::mt19937 random_;
  test::RandomDocuments documents_;
};

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: rule_cases SEED COUNT\n";
    return 2;
  }
  trainer::Cases cases(static_cast<unsigned>(std::atoi(argv[1])));
  for (const trainer::ApiKind& kind : trainer::api_kinds()) cases.print(kind, std::atoi(argv[2]));
}
