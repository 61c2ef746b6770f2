// Server-side apply and metadata.managedFields.
#include <fmt/format.h>

#include <algorithm>

#include "kube/server/managers.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/server_world.hh"

using kube::Json;
using kube::test::body;
using kube::test::json;
using kube::test::kConfigMapsPath;
using kube::test::kWidgetsPath;
using kube::test::outcome;
using kube::test::World;

namespace {

const std::string kA = std::string(kConfigMapsPath) + "/a";
const std::string kW = std::string(kWidgetsPath) + "/w";

std::string widget(std::string_view spec) {
  return fmt::format(
      "{{'apiVersion':'example.com/v1','kind':'Widget','metadata':{{'name':'w'}},'spec':{}}}",
      spec);
}

std::string config_map(std::string_view data) {
  return fmt::format("{{'apiVersion':'v1','kind':'ConfigMap','metadata':{{'name':'a'}},'data':{}}}",
                     data);
}

// The spec after a sequence of applies, "MANAGER SPEC" each, forced where a "!" follows the
// manager.
std::string spec_after(World& world, const std::vector<std::string>& applies) {
  for (const std::string& one : applies) {
    const std::size_t space = one.find(' ');
    std::string manager = one.substr(0, space);
    const bool is_forced = manager.ends_with('!');
    if (is_forced) manager.pop_back();
    const auto response = world.apply(kW, manager, widget(one.substr(space + 1)), is_forced);
    if (response.status >= 300) return outcome(response);
  }
  Json spec = world.stored(kW).get("spec");
  spec.erase("replicas");  // a default
  std::string text = kube::print_json(spec);
  std::replace(text.begin(), text.end(), '"', '\'');
  return text;
}

}  // namespace

TEST_CASE("apply: creates, and says nothing of defaults and of what identifies the object") {
  World world;
  const auto made = world.apply(
      kW, "m",
      "{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'w','namespace':'n',"
      "'labels':{'l':'1'},'finalizers':['x.io/f'],'ownerReferences':[{'apiVersion':'v1',"
      "'kind':'ConfigMap','name':'o','uid':'u1'}]},'spec':{'size':1,'parts':[{'name':'p',"
      "'color':'red'}],'ports':[{'port':80}],'tags':['t'],'order':['o'],'labels':{'k':'v'},"
      "'point':{'x':1}}}");
  CHECK(made.status == 201);
  CHECK(body(made).get("spec").get_int("replicas") == 1);
  CHECK(world.managers(kW) ==
        "m Apply: {'f:metadata':{'f:finalizers':{'v:\\'x.io/f\\'':{}},"
        "'f:labels':{'f:l':{}},"
        "'f:ownerReferences':{'k:{\\'uid\\':\\'u1\\'}':{}}},"
        "'f:spec':{'f:labels':{'f:k':{}},'f:order':{},"
        "'f:parts':{'k:{\\'name\\':\\'p\\'}':{'.':{},'f:color':{},'f:name':{}}},"
        "'f:point':{},"
        "'f:ports':{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{}}},"
        "'f:size':{},'f:tags':{'v:\\'t\\'':{}}}}\n");
}

TEST_CASE("apply: what a manager no longer says is removed, unless another one says it") {
  struct Case {
    std::vector<std::string> applies;
    std::string_view spec;
  };
  const Case cases[] = {
      {{"a {'size':1}"}, "{'size':1}"},
      {{"a {'size':1}", "a {'size':2}"}, "{'size':2}"},
      {{"a {'size':1,'order':['x']}", "a {'size':1}"}, "{'size':1}"},
      {{"a {'labels':{'x':'1','y':'2'}}", "a {'labels':{'x':'1'}}"}, "{'labels':{'x':'1'}}"},
      {{"a {'labels':{'x':'1'}}", "b {'labels':{'y':'2'}}", "a {}"}, "{'labels':{'y':'2'}}"},
      {{"a {'labels':{'x':'1'}}", "b {'labels':{'x':'1'}}", "a {}"}, "{'labels':{'x':'1'}}"},
      {{"a {'labels':{'x':'1'}}", "b {'labels':{'x':'1'}}", "a {}", "b {}"}, "{}"},
      // Items of a list with keys.
      {{"a {'parts':[{'name':'p','count':1},{'name':'q'}]}", "a {'parts':[{'name':'q'}]}"},
       "{'parts':[{'name':'q'}]}"},
      {{"a {'parts':[{'name':'p','count':1}]}", "b {'parts':[{'name':'p','color':'red'}]}"},
       "{'parts':[{'color':'red','count':1,'name':'p'}]}"},
      {{"a {'parts':[{'name':'p','count':1}]}", "b {'parts':[{'name':'p','color':'red'}]}", "a {}"},
       "{'parts':[{'color':'red','name':'p'}]}"},
      {{"a {'parts':[{'name':'p'}]}", "b {'parts':[{'name':'q'}]}", "a {}"},
       "{'parts':[{'name':'q'}]}"},
      {{"a {'ports':[{'port':80}]}", "b {'ports':[{'port':80,'protocol':'TCP'}]}"},
       "{'ports':[{'port':80,'protocol':'TCP'}]}"},
      {{"a {'ports':[{'port':80}]}", "b {'ports':[{'port':80,'protocol':'UDP'}]}"},
       "{'ports':[{'port':80},{'port':80,'protocol':'UDP'}]}"},
      // Sets, and what is replaced whole.
      {{"a {'tags':['x','y']}", "b {'tags':['y','z']}"}, "{'tags':['x','y','z']}"},
      {{"a {'tags':['x','y']}", "b {'tags':['y','z']}", "a {'tags':['x']}"},
       "{'tags':['x','y','z']}"},
      {{"a {'tags':['x','y']}", "a {'tags':['x']}"}, "{'tags':['x']}"},
      {{"a {'order':['x','y']}", "a {'order':['y']}"}, "{'order':['y']}"},
      {{"a {'point':{'x':1,'y':2}}", "a {'point':{'x':1}}"}, "{'point':{'x':1}}"},
      // By force.
      {{"a {'size':1}", "b! {'size':2}"}, "{'size':2}"},
      {{"a {'size':1}", "b! {'size':2}", "a {}"}, "{'size':2}"},
      {{"a {'point':{'x':1}}", "b! {'point':{'y':2}}"}, "{'point':{'y':2}}"},
      {{"a {'order':['x']}", "b! {'order':['y']}", "b {}"}, "{}"},
  };
  for (const auto& c : cases) {
    World world;
    CAPTURE(c.applies);
    CHECK(spec_after(world, c.applies) == c.spec);
  }
}

TEST_CASE("apply: the order of merged lists") {
  struct Case {
    std::string_view first, second, result;
  };
  const Case cases[] = {
      {"ab", "c", "abc"},   {"ab", "ca", "cab"},   {"abc", "ac", "abc"},
      {"abc", "ca", "bca"}, {"abc", "cba", "cba"}, {"ab", "xby", "axby"},
      {"abc", "b", "abc"},  {"", "ab", "ab"},      {"abcd", "dxa", "bcdxa"},
  };
  const auto parts = [](std::string_view names) {
    std::string items;
    for (const char name : names)
      items += fmt::format("{}{{'name':'{}'}}", items.empty() ? "" : ",", name);
    return fmt::format("{{'parts':[{}]}}", items);
  };
  for (const auto& c : cases) {
    World world;
    CAPTURE(c.first, c.second);
    REQUIRE(world.apply(kW, "a", widget(parts(c.first))).status == 201);
    REQUIRE(world.apply(kW, "b", widget(parts(c.second))).status == 200);
    std::string names;
    const Json stored = world.stored(kW);
    for (const Json& part : stored.get("spec").get_array("parts")) names += part.get_string("name");
    CHECK(names == c.result);
  }
}

TEST_CASE("apply: conflicts name the managers and their fields") {
  World world;
  REQUIRE(world.apply(kW, "a", widget("{'size':1,'parts':[{'name':'p','count':1}]}")).status ==
          201);
  const auto one = world.apply(kW, "b", widget("{'size':2}"));
  CHECK(outcome(one) ==
        "409 Conflict: Apply failed with 1 conflict: conflict with \"a\": .spec.size");
  const Json details = body(one).get("details");
  REQUIRE(details.get_array("causes").size() == 1);
  const Json& cause = details.get_array("causes").front();
  CHECK(cause.get_string("reason") == "FieldManagerConflict");
  CHECK(cause.get_string("message") == "conflict with \"a\"");
  CHECK(cause.get_string("field") == ".spec.size");
  REQUIRE(
      world.send("PATCH", kW, "{'spec':{'order':['x']}}", "application/merge-patch+json").status ==
      200);
  CHECK(outcome(world.apply(
            kW, "b",
            widget("{'size':2,'order':['y'],'parts':[{'name':'p','count':2},{'name':'q'}]}"))) ==
        "409 Conflict: Apply failed with 3 conflicts: conflicts with \"a\":\n"
        "- .spec.size\n- .spec.parts[name=\"p\"].count\n"
        "conflicts with \"tester\" using example.com/v1:\n- .spec.order");
  // Nothing of the request was stored, and equal values are no conflict.
  CHECK(world.stored(kW).get("spec").get_int("size") == 1);
  CHECK(outcome(world.apply(kW, "b", widget("{'size':1,'parts':[{'name':'q'}]}"))) == "200");
}

TEST_CASE("apply: managers of updates") {
  World world;
  REQUIRE(world.post(kWidgetsPath, widget("{'size':1,'labels':{'x':'1'}}")).status == 201);
  CHECK(world.managers(kW) ==
        "tester Update: {'f:spec':{'.':{},'f:labels':{'.':{},'f:x':{}},'f:replicas':{},"
        "'f:size':{}}}\n");
  world.pass(std::chrono::seconds(5));
  world.user_agent = "other/2";
  world.send("PATCH", kW, "{'spec':{'size':2,'labels':{'y':'2'}},'metadata':{'labels':{'l':'1'}}}",
             "application/merge-patch+json");
  CHECK(world.managers(kW) ==
        "tester Update: {'f:spec':{'.':{},'f:labels':{'.':{},'f:x':{}},'f:replicas':{}}}\n"
        "other Update: {'f:metadata':{'f:labels':{'.':{},'f:l':{}}},"
        "'f:spec':{'f:labels':{'f:y':{}},'f:size':{}}}\n");
  world.pass(std::chrono::seconds(5));
  world.send("PATCH", kW + "/status?fieldManager=named",
             "{'status':{'phase':'on'},'spec':{'size':9}}", "application/merge-patch+json");
  CHECK(world.managers(kW).ends_with("named Update status: {'f:status':{'.':{},'f:phase':{}}}\n"));
  // A removed field has no owner any more.
  world.send("PATCH", kW, "{'spec':{'labels':null}}", "application/merge-patch+json");
  CHECK(world.managers(kW).starts_with("tester Update: {'f:spec':{'.':{},'f:replicas':{}}}\n"));
}

TEST_CASE("apply: an apply and an update of one client are two managers") {
  World world;
  REQUIRE(world.apply(kA, "m", config_map("{'x':'1'}")).status == 201);
  world.send("PATCH", kA + "?fieldManager=m", "{'data':{'x':'2','y':'3'}}",
             "application/merge-patch+json");
  CHECK(world.managers(kA) == "m Update: {'f:data':{'f:x':{},'f:y':{}}}\n");
  CHECK(outcome(world.apply(kA, "m", config_map("{'x':'1'}"))) ==
        "409 Conflict: Apply failed with 1 conflict: conflict with \"m\" using v1: .data.x");
  REQUIRE(world.apply(kA, "m", config_map("{'x':'1'}"), true).status == 200);
  CHECK(world.managers(kA) == "m Apply: {'f:data':{'f:x':{}}}\nm Update: {'f:data':{'f:y':{}}}\n");
}

TEST_CASE("apply: nothing is written where nothing changes") {
  World world;
  REQUIRE(world.apply(kW, "a", widget("{'size':1}")).status == 201);
  const Json before = world.stored(kW);
  world.pass(std::chrono::seconds(60));
  REQUIRE(world.apply(kW, "a", widget("{'size':1}")).status == 200);
  CHECK(world.stored(kW) == before);
  world.send("PUT", kW, kube::print_json(before));
  CHECK(world.stored(kW) == before);
  // Another manager of the same value is a change of managedFields alone.
  REQUIRE(world.apply(kW, "b", widget("{'size':1}")).status == 200);
  CHECK(world.stored(kW) != before);
  CHECK(world.stored(kW).get("metadata").get_int("generation") == 1);
}

TEST_CASE("apply: the status subresource") {
  World world;
  REQUIRE(world.apply(kW, "a", widget("{'size':1}")).status == 201);
  const std::string text =
      "{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'w'},"
      "'spec':{'size':7},'status':{'phase':'on'}}";
  REQUIRE(world.apply(kW + "/status", "s", text, true).status == 200);
  CHECK(world.stored(kW).get("status") == json("{'phase':'on'}"));
  CHECK(world.stored(kW).get("spec").get_int("size") == 1);
  CHECK(world.managers(kW) ==
        "a Apply: {'f:spec':{'f:size':{}}}\ns Apply status: {'f:status':{'f:phase':{}}}\n");
  CHECK(outcome(world.apply(std::string(kWidgetsPath) + "/q/status", "s",
                            "{'metadata':{'name':'q'},'status':{}}")) ==
        "404 NotFound: widgets.example.com \"q\" not found");
  // Through the object itself, a status is not applied.
  REQUIRE(world
              .apply(kW, "a",
                     "{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'w'},"
                     "'spec':{'size':1},'status':{'phase':'off'}}")
              .status == 200);
  CHECK(world.stored(kW).get("status") == json("{'phase':'on'}"));
}

TEST_CASE("apply: what it has emptied is null, and that is no list of a custom resource") {
  World world;
  REQUIRE(world.post(kWidgetsPath, widget("{'parts':[],'size':1}")).status == 201);
  REQUIRE(world.apply(kW, "a", widget("{'parts':[{'name':'p'}]}")).status == 200);
  // The list itself is the creator's, so it stays. If it has no owner, it is removed.
  const Json before = world.stored(kW);
  CHECK(outcome(world.apply(kW, "a", widget("{'parts':[]}"))) ==
        "422 Invalid: Widget.example.com \"w\" is invalid: spec.parts: Invalid value: \"null\": "
        "must be of type array: \"null\"");
  CHECK(world.stored(kW) == before);
  CHECK(spec_after(world, {"a {'parts':[{'name':'q'}]}"}) == "{'parts':[{'name':'q'}],'size':1}");
  World other;
  CHECK(spec_after(other, {"a {'size':1,'parts':[{'name':'p'}]}", "a {'size':1,'parts':[]}"}) ==
        "{'size':1}");
  CHECK(spec_after(other, {"a {'size':1,'labels':{'x':'1'}}", "a {'size':1,'labels':{}}"})
            .find("spec.labels: Invalid value: \"null\": must be of type object") !=
        std::string::npos);
  CHECK(outcome(other.apply(kW, "b", widget("{'order':null}"))).find("spec.order") !=
        std::string::npos);
  // A struct of Go has no null. In a custom resource only the metadata is a struct.
  World third;
  const std::string labelled =
      "{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'w','labels':";
  REQUIRE(third.apply(kW, "a", labelled + "{'x':'1'}}}").status == 201);
  REQUIRE(third.apply(kW, "a", labelled + "{}}}").status == 200);
  CHECK(third.stored(kW).get("metadata").find("labels") == nullptr);
  REQUIRE(third.apply(kA, "a", config_map("{'x':'1'}")).status == 201);
  REQUIRE(third.apply(kA, "a", config_map("{}")).status == 200);
  CHECK(third.stored(kA).find("data") == nullptr);
}

TEST_CASE("apply: a map that it has emptied stays with its other managers") {
  World world;
  const std::string labelled =
      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','labels':";
  REQUIRE(world.post(kConfigMapsPath, labelled + "{'b':'1'}}}").status == 201);
  REQUIRE(world.apply(kA, "m", labelled + "{'a':'1','b':'2'}}}", true).status == 200);
  REQUIRE(world.apply(kA, "m", labelled + "{}}}").status == 200);
  CHECK(world.stored(kA).get("metadata").find("labels") == nullptr);
  CHECK(world.managers(kA) ==
        "m Apply: {'f:metadata':{'f:labels':{}}}\n"
        "tester Update: {'f:metadata':{'f:labels':{}}}\n");
}

TEST_CASE("apply: what it is refused for") {
  World world;
  REQUIRE(world.apply(kW, "a", widget("{'size':1}")).status == 201);
  CHECK(outcome(world.send("PATCH", kW, widget("{}"), "application/apply-patch+yaml")) ==
        "422 Invalid: PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is "
        "required for apply patch");
  CHECK(outcome(world.apply(kW, "a", "{'metadata':{'name':'w','managedFields':[]}}")) ==
        "400 BadRequest: metadata.managedFields must be nil");
  CHECK(outcome(world.apply(kW, "a", widget("{'colour':'red'}"))) ==
        "500 : failed to create typed patch object (/w; example.com/v1, Kind=Widget): "
        ".spec.colour: field not declared in schema");
  CHECK(outcome(world.apply(kW, "a", widget("{'parts':[{'color':'red'}]}"))) ==
        "500 : failed to create typed patch object (/w; example.com/v1, Kind=Widget): "
        ".spec.parts: element 0: associative list with keys has an element that omits all key "
        "fields [\"name\"] (and doesn't have default values for any key fields)");
  CHECK(outcome(world.apply(kW, "a", widget("{'parts':[{'name':'p'},{'name':'p'}]}"))) ==
        "500 : failed to create typed patch object (/w; example.com/v1, Kind=Widget): "
        ".spec.parts: duplicate entries for key [name=\"p\"]");
  CHECK(outcome(world.apply(kW, "a",
                            "{'apiVersion':'example.com/v1','kind':'Widget','metadata':{"
                            "'name':'w','uid':'other'},'spec':{'size':1}}"))
            .find("metadata.uid: Invalid value: \"other\": field is immutable") !=
        std::string::npos);
  CHECK(outcome(world.apply(std::string(kWidgetsPath) + "/q", "a",
                            "{'apiVersion':'example.com/v1','kind':'Widget','metadata':{"
                            "'name':'q','uid':'u'}}")) ==
        "409 Conflict: Operation cannot be fulfilled on widgets.example.com \"q\": uid mismatch: "
        "the provided object specified uid u, and no existing object was found");
  CHECK(outcome(world.apply(kW, "a",
                            "{'apiVersion':'example.com/v1','kind':'Widget','metadata':{"
                            "'name':'w','resourceVersion':'1'},'spec':{'size':2}}"))
            .substr(0, 12) == "409 Conflict");
  CHECK(outcome(world.apply(kW, "a", "{'metadata':{'name':'w'}}")) ==
        "400 BadRequest: invalid object type: , Kind=");
}

TEST_CASE("apply: what the merged object cannot hold") {
  World world;
  CHECK(outcome(world.apply(kA, "m", config_map("{'x':1}"))) ==
        "500 : failed to create typed patch object (/a; v1, Kind=ConfigMap): .data.x: expected "
        "string, got &{1}");
  CHECK(outcome(world.apply(kA, "m",
                            "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'},"
                            "'binaryData':{'x':'*'}}")) ==
        "500 : illegal base64 data at input byte 0");
}

TEST_CASE("apply: kubectl's annotation") {
  constexpr std::string_view kKey = "kubectl.kubernetes.io/last-applied-configuration";
  World world;
  const std::string applied =
      R"({"apiVersion":"v1","data":{"x":"1"},"kind":"ConfigMap","metadata":{"name":"a"}})";
  Json object = json(config_map("{'x':'1','z':'9'}"));
  object["metadata"]["annotations"].set(kKey, applied);
  world.user_agent = "kubectl-client-side-apply";
  REQUIRE(world.post(kConfigMapsPath, kube::print_json(object)).status == 201);
  // Fields that kubectl applied by the annotation are no conflict for it; the rest is.
  CHECK(outcome(world.apply(kA, "kubectl", config_map("{'x':'2','z':'8'}"))) ==
        "409 Conflict: Apply failed with 1 conflict: conflict with "
        "\"kubectl-client-side-apply\" using v1: .data.z");
  CHECK(outcome(world.apply(kA, "other", config_map("{'x':'2'}"))) ==
        "409 Conflict: Apply failed with 1 conflict: conflict with "
        "\"kubectl-client-side-apply\" using v1: .data.x");
  REQUIRE(world.apply(kA, "kubectl", config_map("{'x':'2'}")).status == 200);
  CHECK(world.stored(kA).get("data") == json("{'x':'2','z':'9'}"));
  CHECK(world.stored(kA).get("metadata").get("annotations").get_string(kKey) ==
        R"({"apiVersion":"v1","data":{"x":"2"},"kind":"ConfigMap","metadata":{"name":"a"}})"
        "\n");
}

TEST_CASE("apply: managedFields that a client sends") {
  World world;
  REQUIRE(world.apply(kA, "m", config_map("{'x':'1'}")).status == 201);
  // An empty list forgets all managers, and an object without any is not tracked.
  world.send("PATCH", kA, "{'metadata':{'managedFields':[]}}", "application/merge-patch+json");
  CHECK(world.managers(kA).empty());
  world.send("PATCH", kA, "{'data':{'y':'2'}}", "application/merge-patch+json");
  CHECK(world.managers(kA).empty());
  // The first apply records the former owners.
  REQUIRE(world.apply(kA, "m", config_map("{'z':'3'}")).status == 200);
  CHECK(world.managers(kA) ==
        "m Apply: {'f:data':{'f:z':{}}}\n"
        "before-first-apply Update: {'f:data':{'.':{},'f:x':{},'f:y':{}}}\n");
  // kubectl does this when it begins to apply at the server.
  world.send("PATCH", kA,
             "[{'op':'replace','path':'/metadata/managedFields','value':[{'manager':'k',"
             "'operation':'Apply','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':"
             "{'f:data':{'f:x':{}}}}]}]",
             "application/json-patch+json");
  CHECK(world.managers(kA) == "k Apply: {'f:data':{'f:x':{}}}\n");
  REQUIRE(world.apply(kA, "k", config_map("{}")).status == 200);
  CHECK(world.stored(kA).get("data") == json("{'y':'2','z':'3'}"));
}

TEST_CASE("managers: at most ten updates are kept apart") {
  World world;
  REQUIRE(world.post(kConfigMapsPath, config_map("{'k0':'1'}")).status == 201);
  for (int i = 1; i < 12; ++i) {
    world.pass(std::chrono::seconds(1));
    world.send("PATCH", fmt::format("{}?fieldManager=m{}", kA, i),
               fmt::format("{{'data':{{'k{}':'1'}}}}", i), "application/merge-patch+json");
  }
  const auto entries =
      kube::server::ManagedEntries::read(world.stored(kA).get("metadata").get("managedFields"));
  REQUIRE(entries);
  CHECK(entries->all().size() == 10);
  CHECK(world.managers(kA).starts_with(
      "ancient-changes Update: {'f:data':{'.':{},'f:k0':{},'f:k1':{},'f:k2':{}}}\n"));
}

TEST_CASE("managers: entries that are none") {
  for (const auto* text :
       {"[{'manager':'m','operation':'Write','apiVersion':'v1','fieldsType':'FieldsV1'}]",
        "[{'manager':'m','operation':'Apply','fieldsType':'FieldsV1'}]",
        "[{'manager':'m','operation':'Apply','apiVersion':'v1'}]",
        "[{'manager':'m','operation':'Apply','apiVersion':'v1','fieldsType':'FieldsV1',"
        "'fieldsV1':{'data':{}}}]"}) {
    CAPTURE(text);
    CHECK_FALSE(kube::server::ManagedEntries::read(json(text)));
  }
}
