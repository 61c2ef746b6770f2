// Patches exchange one source for another: one of them is left.
#include "runtimes/pipeline/unions.hh"

#include <algorithm>
#include <random>
#include <set>

#include "api/schema/kubernetes_types.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;
using pipeline::PodUnion;
using Words = std::vector<std::string>;

Json merged(const Json& base, const Json& change) {
  const auto in_job = [](const Json& pod) {
    Json job = Json::object({{"name", "node"}});
    job["template"]["spec"]["template"].set("spec", pod);
    return Json::object({{"replicatedJobs", Json::array({job})}});
  };
  auto result = pipeline::merge_runtime_patch(in_job(base), in_job(change));
  REQUIRE(result);
  return result->get_array("replicatedJobs")[0].get_path({"template", "spec", "template", "spec"});
}

TEST_CASE("a patch's source replaces the other one", "[unions]") {
  struct Row {
    const char* base;
    const char* patch;
    const char* expected;
  };
  const Row row = GENERATE(
      Row{"{containers: [{name: c1, env: [{name: A, value: x}, {name: B, value: b}]}]}",
          "{containers: [{name: c1, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: "
          "k}}}]}]}",
          "{containers: [{name: c1, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}, "
          "{name: B, value: b}]}]}"},
      Row{"{containers: [{name: c1, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: "
          "k}}}]}]}",
          "{containers: [{name: c1, env: [{name: A, value: ''}]}]}",
          "{containers: [{name: c1, env: [{name: A, value: ''}]}]}"},
      Row{"{containers: [{name: c1, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: "
          "k}}}]}]}",
          "{containers: [{name: c1, env: [{name: A, valueFrom: {fieldRef: {fieldPath: f}}}]}]}",
          "{containers: [{name: c1, env: [{name: A, valueFrom: {fieldRef: {fieldPath: f}}}]}]}"},
      // Members of the same source merge.
      Row{"{containers: [{name: c1, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: "
          "k}}}]}]}",
          "{containers: [{name: c1, env: [{name: A, valueFrom: {secretKeyRef: {key: other}}}]}]}",
          "{containers: [{name: c1, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: "
          "other}}}]}]}"},
      Row{"{initContainers: [{name: c1, env: [{name: A, value: x}]}]}",
          "{initContainers: [{name: c1, env: [{name: A, valueFrom: {fieldRef: {fieldPath: f}}}]}]}",
          "{initContainers: [{name: c1, env: [{name: A, valueFrom: {fieldRef: {fieldPath: "
          "f}}}]}]}"},
      Row{"{volumes: [{name: v, emptyDir: {medium: Memory}}]}",
          "{volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}",
          "{volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}"},
      Row{"{volumes: [{name: v, emptyDir: {medium: Memory}}]}",
          "{volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}]}",
          "{volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]}"},
      Row{"{volumes: [{name: v, emptyDir: {}}]}", "{volumes: [{name: v}]}",
          "{volumes: [{name: v, emptyDir: {}}]}"},
      Row{"{resourceClaims: [{name: c, resourceClaimName: a}]}",
          "{resourceClaims: [{name: c, resourceClaimTemplateName: b}]}",
          "{resourceClaims: [{name: c, resourceClaimTemplateName: b}]}"},
      Row{"{containers: [{name: c1, livenessProbe: {exec: {command: [a]}, periodSeconds: 3}}]}",
          "{containers: [{name: c1, livenessProbe: {httpGet: {port: 1}}}]}",
          "{containers: [{name: c1, livenessProbe: {httpGet: {port: 1}, periodSeconds: 3}}]}"},
      Row{"{containers: [{name: c1, lifecycle: {preStop: {exec: {command: [a]}}}}]}",
          "{containers: [{name: c1, lifecycle: {preStop: {sleep: {seconds: 1}}}}]}",
          "{containers: [{name: c1, lifecycle: {preStop: {sleep: {seconds: 1}}}}]}"},
      Row{"{securityContext: {seccompProfile: {type: Localhost, localhostProfile: p}}}",
          "{securityContext: {seccompProfile: {type: RuntimeDefault}}}",
          "{securityContext: {seccompProfile: {type: RuntimeDefault}}}"},
      Row{"{securityContext: {seccompProfile: {type: Localhost, localhostProfile: p}}}",
          "{securityContext: {seccompProfile: {type: Localhost}}}",
          "{securityContext: {seccompProfile: {type: Localhost, localhostProfile: p}}}"},
      // This is not a container's: a user's own map may have any names.
      Row{"{nodeSelector: {value: a}}", "{nodeSelector: {valueFrom: b}}",
          "{nodeSelector: {value: a, valueFrom: b}}"});
  INFO(row.base << " " << row.patch);
  CHECK(merged(yaml(row.base), yaml(row.patch)) == yaml(row.expected));
}

TEST_CASE("runtime patches and older overrides merge so", "[unions]") {
  const Runtime runtime = runtime_with("{}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}, {name: side, image: s, env: [{name: A, value: x}]}]}}}
)");
  const Built result = built(job_with(R"({runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec:
      {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers:
      [{name: side, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}}}]}}}}]})"),
                             runtime);
  CHECK(container_in(result, "node", "side").get_array("env").at(0) ==
        yaml("{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}"));
}

// Every object of the pod schema, with the name of its field.
class Schema {
 public:
  Schema() : types_(read_kubernetes_types().get("types")), known_(types_) {
    walk(types_.get("PodSpec"), "spec", 0);
  }
  const std::set<std::pair<std::string, Words>>& objects() const { return objects_; }

 private:
  void walk(const Json& schema, const std::string& field, int depth) {
    if (depth > 12) return;
    if (const Json* target = known_.target_of(schema)) return walk(*target, field, depth + 1);
    if (const Json* items = schema.find("items")) return walk(*items, field, depth + 1);
    const auto& members = schema.get_object("properties");
    if (members.empty()) return;
    Words names;
    for (const auto& [name, _] : members) names.push_back(name);
    std::sort(names.begin(), names.end());
    objects_.insert({field, names});
    for (const auto& [name, member] : members) walk(member, name, depth + 1);
  }

  Json types_;
  KubernetesTypes known_;
  std::set<std::pair<std::string, Words>> objects_;
};

bool has(const Words& names, std::initializer_list<const char*> wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&names](const char* one) {
    return std::find(names.begin(), names.end(), one) != names.end();
  });
}

// Returns whether the names make an object a union; a list that is not merged does not count here.
bool is_union(const Words& names) {
  return has(names, {"value", "valueFrom"}) || has(names, {"configMapKeyRef", "secretKeyRef"}) ||
         has(names, {"emptyDir", "hostPath"}) || has(names, {"exec", "httpGet"}) ||
         has(names, {"resourceClaimName", "resourceClaimTemplateName"});
}

TEST_CASE("the table has the unions of the pod schema, and no others", "[unions]") {
  const Schema schema;
  REQUIRE(schema.objects().size() > 60);
  std::set<std::string> in_schema;
  std::set<std::string> profiles;
  for (const auto& [field, names] : schema.objects()) {
    if (is_union(names)) in_schema.insert(field);
    if (has(names, {"localhostProfile", "type"})) profiles.insert(field);
    for (const PodUnion& one : pipeline::pod_unions()) {
      if (one.field != field) continue;
      INFO(field);
      CHECK(is_union(names));
      for (const std::string_view member : one.members)
        CHECK(std::find(names.begin(), names.end(), member) != names.end());
    }
  }
  std::set<std::string> in_table;
  for (const PodUnion& one : pipeline::pod_unions()) in_table.emplace(one.field);
  CHECK(in_table == in_schema);
  const auto known = pipeline::pod_profiles();
  CHECK(profiles == std::set<std::string>(known.begin(), known.end()));
}

TEST_CASE("of any two sources the patch's alone is left", "[unions]") {
  const Schema schema;
  std::mt19937 random(20261127);  // the same pairs in every run
  int exchanged = 0;
  for (const PodUnion& one : pipeline::pod_unions()) {
    Words members(one.members.begin(), one.members.end());
    if (members.empty())
      for (const auto& [field, names] : schema.objects())
        if (field == one.field) members = names;
    std::erase(members, "name");
    REQUIRE(members.size() > 1);
    for (int i = 0; i < 20; ++i) {
      const std::string from = members[random() % members.size()];
      const std::string to = members[random() % members.size()];
      const auto holder = [&one](const std::string& member) {
        const Json object = Json::object({{"name", "x"}, {member, Json::object({{"k", "v"}})}});
        const bool is_list = one.field == "volumes" || one.field == "resourceClaims";
        if (is_list) return Json::object({{one.field, Json::array({object})}});
        Json container = Json::object({{"name", "c1"}});
        if (one.field == "env") container.set("env", Json::array({object}));
        if (one.field == "valueFrom")
          container.set("env", Json::array({Json::object({{"name", "A"}, {"valueFrom", object}})}));
        if (one.field != "env" && one.field != "valueFrom") container.set(one.field, object);
        return Json::object({{"containers", Json::array({container})}});
      };
      INFO(one.field << ": " << from << " -> " << to);
      const Json after = merged(holder(from), holder(to));
      CHECK(after == holder(to));
      exchanged += from == to ? 0 : 1;
    }
  }
  CHECK(exchanged > 80);
}

}  // namespace
}  // namespace trainer::test
