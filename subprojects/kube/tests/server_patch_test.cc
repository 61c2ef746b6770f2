// JSON patches, merge patches and strategic merge patches.
#include <fmt/format.h>

#include <algorithm>

#include "kube/model/patch.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/server_world.hh"

using kube::Json;
using kube::test::body;
using kube::test::json;
using kube::test::kConfigMapsPath;
using kube::test::kPodsPath;
using kube::test::kWidgetsPath;
using kube::test::outcome;
using kube::test::World;

namespace {

constexpr std::string_view kMerge = "application/merge-patch+json";
constexpr std::string_view kOperations = "application/json-patch+json";
constexpr std::string_view kStrategic = "application/strategic-merge-patch+json";
const std::string kA = std::string(kConfigMapsPath) + "/a";
const std::string kP = std::string(kPodsPath) + "/p";

void make(World& world) {
  REQUIRE(outcome(world.post(kConfigMapsPath,
                             "{'metadata':{'name':'a'},'data':{'x':'1','y':'2'}}")) == "201");
}

// Returns how the lists of a pod merge.
const kube::MergeKeys& pod_keys() {
  static const kube::MergeKeys keys({{"spec.containers", "name"},
                                     {"spec.containers.env", "name"},
                                     {"spec.containers.ports", "containerPort"},
                                     {"metadata.finalizers", ""}});
  return keys;
}

std::string merged(std::string_view target, std::string_view patch) {
  const auto result = kube::strategic_merge_with_directives(json(target), json(patch), pod_keys());
  if (!result) return result.error().message;
  std::string text = kube::print_json(*result);
  std::replace(text.begin(), text.end(), '"', '\'');
  return text;
}

}  // namespace

TEST_CASE("patch: merge patches") {
  World world;
  make(world);
  CHECK(outcome(world.send("PATCH", kA, "{'data':{'x':null,'z':'3'}}", kMerge)) == "200");
  CHECK(world.stored(kA).get("data") == json("{'y':'2','z':'3'}"));
  CHECK(outcome(world.send("PATCH", kA, "[]", kMerge)).substr(0, 14) == "400 BadRequest");
  CHECK(outcome(world.send("PATCH", kA, "{'metadata':{'name':'b'}}", kMerge)) ==
        "400 BadRequest: the name of the object (b) does not match the name on the URL (a)");
  CHECK(outcome(world.send("PATCH", kA, "{'metadata':{'uid':'b'}}", kMerge)) ==
        "422 Invalid: ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"b\": field is "
        "immutable");
  CHECK(outcome(world.send("PATCH", kA, "{'metadata':{'resourceVersion':'1'},'data':{}}", kMerge))
            .substr(0, 12) == "409 Conflict");
  CHECK(outcome(world.send("PATCH", std::string(kConfigMapsPath) + "/q", "{}", kMerge)) ==
        "404 NotFound: configmaps \"q\" not found");
  const std::string version(world.stored(kA).get("metadata").get_string("resourceVersion"));
  CHECK(outcome(world.send(
            "PATCH", kA,
            fmt::format("{{'metadata':{{'resourceVersion':'{}'}},'data':{{'z':'4'}}}}", version),
            kMerge)) == "200");
}

TEST_CASE("patch: what the patched object cannot hold") {
  World world;
  REQUIRE(outcome(world.post(kConfigMapsPath, "{'metadata':{'name':'a'}}")) == "201");
  const std::string data =
      outcome(world.send("PATCH", kA, "{'data':{'x':5}}", std::string(kMerge)));
  CHECK(data.starts_with("422 Invalid:  \"\" is invalid: patch: Invalid value: "));
  CHECK(data.ends_with(
      ": json: cannot unmarshal number into Go struct field ConfigMap.data of type string"));
  CHECK(outcome(world.send("PATCH", kA, "[{'op':'add','path':'/metadata/labels','value':5}]",
                           std::string(kOperations)))
            .ends_with("ObjectMeta.metadata.labels of type map[string]string"));
}

TEST_CASE("patch: JSON patches") {
  World world;
  make(world);
  CHECK(outcome(world.send("PATCH", kA,
                           "[{'op':'test','path':'/data/x','value':'1'},"
                           "{'op':'move','from':'/data/x','path':'/data/z'}]",
                           kOperations)) == "200");
  CHECK(world.stored(kA).get("data") == json("{'y':'2','z':'1'}"));
  CHECK(outcome(
            world.send("PATCH", kA, "[{'op':'test','path':'/data/y','value':'1'}]", kOperations)) ==
        "422 Invalid: the server rejected our request due to an error in our request");
  CHECK(outcome(world.send("PATCH", kA, "{'op':'add'}", kOperations)).substr(0, 14) ==
        "400 BadRequest");
  CHECK(
      outcome(world.send("PATCH", kA, "[{'op':'remove','path':''}]", kOperations)).substr(0, 14) ==
      "400 BadRequest");
}

TEST_CASE("patch: content types") {
  World world;
  make(world);
  CHECK(outcome(world.send("PATCH", kA, "{}", "application/json")) ==
        "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted "
        "media types include: application/json-patch+json, application/merge-patch+json, "
        "application/strategic-merge-patch+json, application/apply-patch+yaml");
  REQUIRE(outcome(world.post(kWidgetsPath, "{'metadata':{'name':'w'}}")) == "201");
  CHECK(outcome(world.send("PATCH", std::string(kWidgetsPath) + "/w", "{}", kStrategic)) ==
        "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted "
        "media types include: application/json-patch+json, application/merge-patch+json, "
        "application/apply-patch+yaml");
  CHECK(outcome(world.send("PATCH", kA, "{'data':{'x':'9'}}",
                           "application/merge-patch+json; charset=utf-8")) == "200");
}

TEST_CASE("patch: strategic merge patches of stored objects") {
  World world;
  REQUIRE(outcome(world.post(kPodsPath,
                             "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'a',"
                             "'image':'i'},{'name':'b'}]}}")) == "201");
  CHECK(outcome(world.send("PATCH", kP,
                           "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],"
                           "'containers':[{'name':'a','image':'j'}]}}",
                           kStrategic)) == "200");
  CHECK(world.stored(kP).get("spec") ==
        json("{'containers':[{'name':'b'},{'name':'a','image':'j'}]}"));
  CHECK(outcome(world.send("PATCH", kP, "{'spec':{'containers':[{'image':'j'}]}}", kStrategic))
            .substr(0, 14) == "400 BadRequest");
}

// The answers are those of strategicpatch of apimachinery, without the fields that its Go types
// always print.
TEST_CASE("strategic_merge_with_directives") {
  struct Case {
    std::string_view target, patch, result;
  };
  const Case cases[] = {
      // Without directives it is strategic_merge.
      {"{'a':{'b':1,'c':2}}", "{'a':{'b':3,'d':null}}", "{'a':{'b':3,'c':2}}"},
      {"{'a':[1]}", "{'a':[2]}", "{'a':[2]}"},
      {"{'spec':{'containers':[{'name':'a','image':'i'}]}}",
       "{'spec':{'containers':[{'name':'b'},{'name':'a','args':['x']}]}}",
       "{'spec':{'containers':[{'name':'b'},{'args':['x'],'image':'i','name':'a'}]}}"},
      // $patch in objects.
      {"{'a':{'b':1}}", "{'a':{'$patch':'replace','c':2}}", "{'a':{'c':2}}"},
      {"{'a':{'b':1}}", "{'a':{'$patch':'delete'}}", "{'a':{}}"},
      {"{}", "{'a':{'b':{'$patch':'delete'},'c':1}}", "{'a':{'c':1}}"},
      {"{'a':{'b':1}}", "{'a':{'$patch':'add'}}", "a: unknown patch type: \"add\""},
      // $patch in lists.
      {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
       "{'spec':{'containers':[{'$patch':'delete','name':'a'}]}}",
       "{'spec':{'containers':[{'name':'b'}]}}"},
      {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
       "{'spec':{'containers':[{'$patch':'replace'},{'name':'c'}]}}",
       "{'spec':{'containers':[{'name':'c'}]}}"},
      {"{'spec':{'containers':[{'name':'a','env':[{'name':'X','value':'1'}]}]}}",
       "{'spec':{'containers':[{'name':'a','env':[{'$patch':'delete','name':'X'},"
       "{'name':'Y','value':'2'}]}]}}",
       "{'spec':{'containers':[{'env':[{'name':'Y','value':'2'}],'name':'a'}]}}"},
      {"{}", "{'spec':{'containers':[{'$patch':'delete','name':'a'},{'name':'b'}]}}",
       "{'spec':{'containers':[{'name':'b'}]}}"},
      // $retainKeys
      {"{'a':{'b':1,'c':2}}", "{'a':{'$retainKeys':['c','d'],'d':3}}", "{'a':{'c':2,'d':3}}"},
      // $setElementOrder
      {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
       "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}]}}",
       "{'spec':{'containers':[{'name':'b'},{'name':'a'}]}}"},
      {"{'spec':{'containers':[{'name':'a'},{'name':'x'},{'name':'b'}]}}",
       "{'spec':{'$setElementOrder/containers':[{'name':'c'},{'name':'b'},{'name':'a'}],"
       "'containers':[{'name':'c'}]}}",
       "{'spec':{'containers':[{'name':'c'},{'name':'x'},{'name':'b'},{'name':'a'}]}}"},
      {"{'spec':{'containers':[{'name':'a'}]}}",
       "{'spec':{'$setElementOrder/containers':[{'name':'gone'},{'name':'a'}]}}",
       "{'spec':{'containers':[{'name':'a'}]}}"},
      {"{}", "{'spec':{'$setElementOrder/containers':[{'name':'a'}]}}", "{'spec':{}}"},
      // Scalars
      {"{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['c','a']}}",
       "{'metadata':{'finalizers':['c','a','b']}}"},
      {"{'metadata':{'finalizers':['a','b']}}",
       "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a'],"
       "'$setElementOrder/finalizers':['b']}}",
       "{'metadata':{'finalizers':['b']}}"},
      {"{'metadata':{}}", "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a']}}",
       "{'metadata':{}}"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.target, c.patch);
    CHECK(merged(c.target, c.patch) == c.result);
  }
}
