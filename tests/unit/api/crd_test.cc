#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "api/api.hh"
#include "api/kinds/kinds.hh"
#include "api/schema/kubernetes_types.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "runtimes/v1/framework.hh"
#include "tests/support/catch.hh"
#include "tests/support/source_root.hh"

namespace trainer {
namespace {

std::vector<kube::Json> custom_resource_definitions() {
  std::vector<kube::Json> all;
  for (const ApiKind& kind : api_kinds()) all.push_back(custom_resource_definition(kind));
  for (const v1::Framework* framework : v1::frameworks())
    all.push_back(custom_resource_definition(v1::api_kind(*framework)));
  return all;
}

std::string file_of(const kube::Json& definition) {
  const std::string group(definition.find("spec")->get_string("group"));
  const char* const folder = group == "kubeflow.org" ? "/manifests/v1/crds/" : "/manifests/crds/";
  return test::source_root() + folder + group + "_" +
         definition.find_path({"spec", "names", "plural"})->as_string() + ".yaml";
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The first line that differs, or "" where the texts are equal: a whole definition is too long to
// be printed.
std::string first_difference(const std::string& have, const std::string& want) {
  std::istringstream left(have);
  std::istringstream right(want);
  std::string a;
  std::string b;
  for (int line = 1;; ++line) {
    const bool has_left = static_cast<bool>(std::getline(left, a));
    const bool has_right = static_cast<bool>(std::getline(right, b));
    if (!has_left && !has_right) return "";
    if (has_left != has_right || a != b)
      return "line " + std::to_string(line) + ": \"" + a + "\" instead of \"" + b + "\"";
  }
}

const kube::Json& schema_of(const kube::Json& definition) {
  return *definition.find("spec")->get_array("versions")[0].find_path(
      {"schema", "openAPIV3Schema"});
}

const kube::Json* property(const kube::Json& schema, std::initializer_list<std::string_view> path) {
  const kube::Json* at = &schema;
  for (const std::string_view name : path) {
    if (at != nullptr && at->get_string("type") == "array") at = at->find("items");
    at = at == nullptr ? nullptr : at->find_path({"properties", name});
  }
  return at;
}

TEST_CASE("the definitions that are checked in are the ones the program prints") {
  // ACCEPT=1 writes the files that differ; such a run fails, so that someone always reads the
  // difference.
  const char* const accept = std::getenv("ACCEPT");
  const bool is_accepting = accept != nullptr && std::string(accept) == "1";
  for (const kube::Json& definition : custom_resource_definitions()) {
    const std::string path = file_of(definition);
    const std::string text = kube::print_yaml(definition);
    const std::string difference = first_difference(read_file(path), text);
    if (is_accepting && !difference.empty()) {
      std::ofstream(path) << text;
      FAIL_CHECK("written: " << path << ": read the difference, then run again without ACCEPT");
      continue;
    }
    INFO(path << ": run this test with ACCEPT=1 and read the difference");
    CHECK(difference == "");
  }
}

TEST_CASE("each definition is small enough, also for a plain kubectl apply") {
  // `kubectl apply` keeps it again in an annotation, which may have 256 KiB.
  for (const kube::Json& definition : custom_resource_definitions()) {
    INFO(definition.find("metadata")->get_string("name"));
    CHECK(kube::print_json(definition).size() <= 250 * 1000);
  }
}

void check_described(const kube::Json& schema, const std::string& path) {
  INFO(path);
  const std::string_view text = schema.get_string("description");
  CHECK((!text.empty() && text.back() == '.'));  // a sentence
  for (const kube::Json* at = &schema; at != nullptr;) {
    for (const auto& [name, member] : at->get_object("properties"))
      check_described(member, path + "." + name);
    const kube::Json* items = at->find("items");
    at = items != nullptr ? items : at->find("additionalProperties");
  }
}

TEST_CASE("every field has a description, those of Kubernetes' types included") {
  for (const kube::Json& definition : custom_resource_definitions()) {
    kube::Json schema = schema_of(definition);
    // The API server accepts nothing there, and describes it itself.
    CHECK(schema["properties"]["metadata"] == kube::Json::object({{"type", "object"}}));
    schema["properties"].erase("metadata");
    check_described(schema, definition.find_path({"spec", "names", "kind"})->as_string());
  }
}

TEST_CASE("every description of Kubernetes' types is of a member that is there") {
  const kube::Json document = read_kubernetes_types();
  const kube::Json descriptions = read_kubernetes_descriptions();
  const auto& types = document.get_object("types");
  const auto has = [](const kube::Json& type, std::string_view member) {
    return type.find_path({"properties", member}) != nullptr;
  };
  for (const auto& [name, members] : descriptions.as_object()) {
    for (const auto& [member, text] : members.as_object()) {
      INFO(name << "." << member);
      if (name == "*") {
        CHECK(std::any_of(types.begin(), types.end(), [&, &member = member](const auto& type) {
          return has(type.second, member) &&
                 descriptions.find_path({type.first, member}) == nullptr;
        }));
      } else {
        CHECK(has(document.get("types").get(name), member));
      }
    }
  }
}

// Checks the API server's requirements of a structural schema, as far as a mistake in describe()
// could break them.
void check_structure(const kube::Json& schema, const std::string& path) {
  INFO(path);
  CHECK(schema.find("$ref") == nullptr);
  CHECK(schema.find("allOf") == nullptr);
  const bool is_int_or_string = schema.get_bool("x-kubernetes-int-or-string");
  CHECK((is_int_or_string || !schema.get_string("type").empty()));
  if (schema.get_string("x-kubernetes-list-type") == "map") {
    const kube::Json* item = schema.find("items");
    for (const kube::Json& key : schema.get_array("x-kubernetes-list-map-keys")) {
      const auto& required = item->get_array("required");
      const kube::Json* member = property(*item, {key.as_string()});
      REQUIRE(member != nullptr);
      CHECK((std::find(required.begin(), required.end(), key) != required.end() ||
             member->find("default") != nullptr));
    }
  }
  for (const auto& [name, member] : schema.get_object("properties"))
    check_structure(member, path + "." + name);
  for (const char* inner : {"items", "additionalProperties"})
    if (const kube::Json* found = schema.find(inner)) check_structure(*found, path + "[]");
}

TEST_CASE("every schema is structural") {
  for (const kube::Json& definition : custom_resource_definitions())
    check_structure(schema_of(definition),
                    definition.find_path({"spec", "names", "kind"})->as_string());
}

TEST_CASE("lists of pods keep the keys by which server-side apply merges them") {
  const kube::Json definition = custom_resource_definition(jobset_kind());
  const kube::Json& jobset = schema_of(definition);
  const kube::Json* pod =
      property(jobset, {"spec", "replicatedJobs", "template", "spec", "template", "spec"});
  REQUIRE(pod != nullptr);
  const kube::Json* ports = property(*pod, {"containers", "ports"});
  CHECK(ports->get_array("x-kubernetes-list-map-keys") ==
        kube::Json::Array{"containerPort", "protocol"});
  CHECK(property(*ports, {"protocol"})->get_string("default") == "TCP");
  CHECK(property(*pod, {"tolerations"})->get_string("x-kubernetes-list-type") == "atomic");
  CHECK(property(*pod, {"imagePullSecrets", "name"})->find("default")->as_string().empty());
  CHECK(property(*pod, {"containers", "resources", "limits"})
            ->find("additionalProperties")
            ->get_bool("x-kubernetes-int-or-string"));
}

TEST_CASE("metadata of templates lets through what a template may hold") {
  const kube::Json definition = custom_resource_definition(jobset_kind());
  const kube::Json* metadata =
      property(schema_of(definition),
               {"spec", "replicatedJobs", "template", "spec", "template", "metadata"});
  REQUIRE(metadata != nullptr);
  std::vector<std::string> names;
  for (const auto& [name, member] : metadata->get_object("properties")) names.push_back(name);
  CHECK(names ==
        std::vector<std::string>{"annotations", "finalizers", "labels", "name", "namespace"});
}

}  // namespace
}  // namespace trainer
