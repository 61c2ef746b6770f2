#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/json.hh"

using kube::Json;
using kube::MergeKeys;
using kube::print_json;
using kube::test::json;

namespace {

// The lists of a pod template that the cases below use.
const MergeKeys& pod_keys() {
  static const MergeKeys keys({{"spec.containers", "name"},
                               {"spec.containers.env", "name"},
                               {"spec.containers.ports", "containerPort"},
                               {"spec.containers.volumeMounts", "mountPath"},
                               {"spec.volumes", "name"}});
  return keys;
}

std::string merge(std::string_view target, std::string_view patch) {
  const auto result = kube::strategic_merge(json(target), json(patch), pod_keys());
  return result ? print_json(*result) : result.error().message;
}

// The names of a merged list of volumes, from the names of target and patch.
std::string merged_order(std::string_view target, std::string_view patch) {
  const auto volumes = [](std::string_view names) {
    Json list = Json::array();
    for (const char name : names) list.push_back(Json::object({{"name", std::string(1, name)}}));
    return Json::object({{"spec", Json::object({{"volumes", list}})}});
  };
  const auto result = kube::strategic_merge(volumes(target), volumes(patch), pod_keys());
  REQUIRE(result);
  std::string names;
  for (const Json& item : result->find_path({"spec", "volumes"})->as_array())
    names += item.get_string("name");
  return names;
}

}  // namespace

// Every expectation of this file is what strategicpatch of apimachinery v0.34 answers for a
// PodTemplateSpec, without the fields that its Go types always print.
TEST_CASE("strategic_merge merges objects and replaces everything else") {
  struct Case {
    std::string_view target, patch, result;
  };
  const Case cases[] = {
      {R"({"a":{"b":1,"c":2}})", R"({"a":{"b":3,"d":4}})", R"({"a":{"b":3,"c":2,"d":4}})"},
      {R"({"a":1,"b":2})", R"({"a":null})", R"({"b":2})"},
      {R"({"a":1})", R"({"b":null})", R"({"a":1})"},
      {R"({"a":1})", R"({"a":{"b":null,"c":{"d":null,"e":1}}})", R"({"a":{"c":{"e":1}}})"},
      {R"({})", R"({"l":[{"a":null,"b":1}]})", R"({"l":[{"b":1}]})"},
      {R"({"tolerations":[{"key":"a"}]})", R"({"tolerations":[{"key":"b"}]})",
       R"({"tolerations":[{"key":"b"}]})"},
      {R"({"a":[1]})", R"({"a":[]})", R"({"a":[]})"},
      {R"({"a":[1]})", R"({"a":{"b":1}})", R"({"a":{"b":1}})"},
      {R"(null)", R"({"a":1})", R"({"a":1})"},
  };
  for (const auto& c : cases) {
    INFO(c.target << " + " << c.patch);
    CHECK(merge(c.target, c.patch) == c.result);
  }
}

TEST_CASE("strategic_merge merges keyed lists by their key, at any depth") {
  CHECK(
      merge(
          R"({"spec":{"containers":[{"name":"node","image":"i","env":[{"name":"A","value":"1"}],"args":["x"]}]}})",
          R"({"spec":{"containers":[{"name":"node","env":[{"name":"B","value":"2"},{"name":"A","value":null}],"args":["y"]},
                  {"name":"side","image":null}]}})") ==
      R"({"spec":{"containers":[{"args":["y"],"env":[{"name":"B","value":"2"},{"name":"A"}],"image":"i","name":"node"},{"name":"side"}]}})");
  CHECK(
      merge(
          R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"name":"x"}]}]}})",
          R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":81}]}]}})") ==
      R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"name":"x","protocol":"TCP"},{"containerPort":81}]}]}})");
  CHECK(
      merge(
          R"({"spec":{"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/a"}]}]}})",
          R"({"spec":{"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/b"},{"name":"w","mountPath":"/a"}]}]}})") ==
      R"({"spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/b","name":"v"},{"mountPath":"/a","name":"w"}]}]}})");
  // Two sources in one volume: the patch merges, and it is validation that refuses.
  CHECK(merge(R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}]}})",
              R"({"spec":{"volumes":[{"name":"v","configMap":{"name":"c"}}]}})") ==
        R"({"spec":{"volumes":[{"configMap":{"name":"c"},"emptyDir":{},"name":"v"}]}})");
}

TEST_CASE("strategic_merge keeps upstream's order of merged lists") {
  struct Case {
    std::string_view target, patch, result;
  };
  const Case cases[] = {
      {"", "", ""},
      {"abc", "", "abc"},
      {"", "xy", "xy"},
      {"abc", "b", "abc"},
      {"abc", "c", "abc"},
      {"abc", "a", "abc"},
      {"abc", "x", "xabc"},
      {"abc", "cx", "abcx"},
      {"abc", "xc", "xabc"},
      {"abc", "ax", "axbc"},
      {"abc", "bx", "abxc"},
      {"abc", "cb", "acb"},
      {"abc", "ca", "bca"},
      {"abcd", "dxa", "bcdxa"},
      {"abcd", "bxd", "abxcd"},
      {"abcd", "db", "acdb"},
      {"abcdef", "xeyb", "xacdeybf"},
      // An item twice in the patch is merged, one twice in the target is merged once.
      {"ab", "xxb", "xab"},
      {"aab", "a", "aab"},
      {"aba", "xa", "xaab"},
      {"abcac", "x", "xaabcc"},
      {"abcac", "b", "aabcc"},
  };
  for (const auto& c : cases) {
    INFO(c.target << " + " << c.patch);
    CHECK(merged_order(c.target, c.patch) == c.result);
  }
}

TEST_CASE("strategic_merge refuses what it cannot merge") {
  CHECK(merge(R"({"spec":{"containers":[{"name":"a"}]}})",
              R"({"spec":{"containers":[{"name":"a"},{"image":"x"}]}})") ==
        "spec.containers[1]: the patch's item has no \"name\", by which the items of this list are "
        "merged; add it");
  CHECK(merge(R"({"spec":{"containers":[{"image":"x"}]}})",
              R"({"spec":{"containers":[{"name":"a"}]}})") ==
        "spec.containers[0]: the target's item has no \"name\", by which the items of this list "
        "are merged; add it");
  CHECK(merge(R"({"spec":{"containers":[{"name":"b"},{"name":"a","env":[]}]}})",
              R"({"spec":{"containers":[{"name":"a","env":[1]}]}})") ==
        "spec.containers[1].env[0]: the patch's item is of type integer, but the items of this "
        "list are objects merged by \"name\"");
  for (const auto& [key, type] : {std::pair("null", "null"), {"[1]", "array"}, {"{}", "object"}}) {
    CHECK(merge(R"({"spec":{"volumes":[{"name":"v"}]}})",
                R"({"spec":{"volumes":[{"name":)" + std::string(key) + "}]}}") ==
          "spec.volumes[0]: the patch's item has a value of type " + std::string(type) +
              " as \"name\", by which the items of this list are merged; correct it");
  }
  CHECK(merge("{}", "[]") == "a strategic merge patch must be an object, not array");
  CHECK(merge("[]", "{}") == "the target of a strategic merge patch must be an object, not array");
}
