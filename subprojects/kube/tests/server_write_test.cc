// POST, PUT, subresources, and what the API server refuses.
#include "kube/model/resources.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/server_world.hh"

using kube::Json;
using kube::print_json;
using kube::test::body;
using kube::test::json;
using kube::test::kConfigMapsPath;
using kube::test::kWidgetsPath;
using kube::test::outcome;
using kube::test::World;

namespace {

const std::string kA = std::string(kConfigMapsPath) + "/a";
const std::string kW = std::string(kWidgetsPath) + "/w";

void make_widget(World& world, std::string_view spec = "{'size':1}") {
  const std::string text =
      "{'metadata':{'name':'w'},'spec':" + std::string(spec) + ",'status':{'phase':'x'}}";
  REQUIRE(outcome(world.post(kWidgetsPath, text)) == "201");
}

// The stored widget after `change`, as a PUT sends it.
std::string widget_with(World& world, void (*change)(Json& widget)) {
  Json widget = world.stored(kW);
  change(widget);
  return print_json(widget);
}

}  // namespace

TEST_CASE("server: a create fills in what the server sets") {
  World world;
  const auto response =
      world.post(kConfigMapsPath,
                 "{'metadata':{'name':'a','uid':'mine','creationTimestamp':'2020-01-01T00:00:00Z',"
                 "'selfLink':'x','deletionTimestamp':null},'data':{'k':'v'}}");
  CHECK(response.status == 201);
  CHECK(body(response) ==
        json("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','namespace':'n',"
             "'uid':'uid-1','creationTimestamp':'2026-01-01T00:00:00Z','resourceVersion':'12',"
             "'managedFields':[{'manager':'tester','operation':'Update','apiVersion':'v1',"
             "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'.':{},'f:k':{}}},"
             "'time':'2026-01-01T00:00:00Z'}]},'data':{'k':'v'}}"));
  CHECK(world.stored(kA) == body(response));
}

TEST_CASE("server: names are generated, and again where they are taken") {
  World world;
  const auto first = world.post(kConfigMapsPath, "{'metadata':{'generateName':'x-'}}");
  CHECK(body(first).get("metadata").get_string("name") == "x-aaaa1");
  REQUIRE(outcome(world.post(kConfigMapsPath, "{'metadata':{'name':'x-aaaa2'}}")) == "201");
  const auto second = world.post(kConfigMapsPath, "{'metadata':{'generateName':'x-'}}");
  CHECK(body(second).get("metadata").get_string("name") == "x-aaaa3");
  const auto longer =
      world.post(kConfigMapsPath, "{'metadata':{'generateName':'" + std::string(70, 'y') + "'}}");
  CHECK(body(longer).get("metadata").get_string("name") == std::string(58, 'y') + "aaaa4");
  // generateName has no effect beside a name.
  const char* const kBoth = "{'metadata':{'name':'stated','generateName':'x-'}}";
  CHECK(outcome(world.post(kConfigMapsPath, kBoth)) == "201");
  CHECK(outcome(world.post(kConfigMapsPath, kBoth)).starts_with("409 AlreadyExists"));
}

TEST_CASE("server: what creates and reads are refused for") {
  World world;
  make_widget(world);
  struct Case {
    std::string_view method, target, text, outcome;
  };
  const Case cases[] = {
      {"GET", "/api/v1/namespaces/n/configmaps/q", "", "404 NotFound: configmaps \"q\" not found"},
      {"GET", "/apis/example.com/v1/namespaces/n/widgets/q", "",
       "404 NotFound: widgets.example.com \"q\" not found"},
      {"GET", "/api/v1/namespaces/n/gadgets", "", "404: 404 page not found\n"},
      {"GET", "/apis/example.com/v1/namespaces/n/widgets/w/eviction", "",
       "404: 404 page not found\n"},
      {"GET", "/api/v1/namespaces/n/configmaps/q/status", "", "404: 404 page not found\n"},
      {"PUT", "/api/v1/namespaces/n/configmaps", "{}",
       "405 MethodNotAllowed: the server does not allow this method on the requested resource"},
      {"POST", "/api/v1/configmaps", "{'metadata':{'name':'a'}}",
       "405 MethodNotAllowed: the server does not allow this method on the requested resource"},
      {"POST", "/apis/example.com/v1/namespaces/n/widgets", "{'metadata':{'name':'w'}}",
       "409 AlreadyExists: widgets.example.com \"w\" already exists"},
      {"POST", "/api/v1/namespaces/n/configmaps", "[]",
       "400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): it is no "
       "JSON object"},
      {"POST", "/api/v1/namespaces/n/configmaps", "{'apiVersion':'v2','metadata':{'name':'a'}}",
       "400 BadRequest: the API version in the data (v2) does not match the expected API version "
       "(v1)"},
      {"POST", "/api/v1/namespaces/n/configmaps",
       "{'apiVersion':'v1','kind':'Secret','metadata':{'name':'a'}}",
       "400 BadRequest: Secret in version \"v1\" cannot be handled as a ConfigMap: the kind in the "
       "data does not match ConfigMap"},
      {"POST", "/api/v1/namespaces/n/configmaps", "{'metadata':{'name':'a','namespace':'m'}}",
       "400 BadRequest: the namespace of the provided object does not match the namespace sent on "
       "the request"},
      {"POST", "/api/v1/namespaces/q/configmaps", "{'metadata':{'name':'a'}}",
       "404 NotFound: namespaces \"q\" not found"},
      {"POST", "/api/v1/namespaces/n/configmaps", "{'metadata':{'name':'a','labels':[]}}",
       "400 BadRequest: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "
       "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type "
       "map[string]string"},
      {"POST", "/api/v1/namespaces/n/configmaps", "{'metadata':{'name':'a','labels':{'b':5}}}",
       "400 BadRequest: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "
       "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type "
       "string"},
      {"POST", kWidgetsPath, "{'metadata':{'name':'v','ownerReferences':[{'controller':'yes'}]}}",
       "400 BadRequest: Widget in version \"v1\" cannot be handled as a Widget: json: cannot "
       "unmarshal string into Go struct field OwnerReference.metadata.ownerReferences.controller "
       "of type bool"},
      {"POST", "/api/v1/namespaces/n/configmaps", "{'metadata':{'name':'a'},'data':{'b':5}}",
       "400 BadRequest: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "
       "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"},
      // This comes before unknown fields, and before the name is checked.
      {"POST", "/api/v1/namespaces/n/configmaps?fieldValidation=Strict",
       "{'data':'b','immutable':'yes'}",
       "400 BadRequest: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "
       "json: cannot unmarshal string into Go struct field ConfigMap.data of type "
       "map[string]string"},
      {"POST", "/api/v1/namespaces/n/configmaps", "{'metadata':{'name':'a','resourceVersion':'7'}}",
       "500 : resourceVersion should not be set on objects to be created"},
      {"POST", "/api/v1/namespaces/n/configmaps", "{}",
       "422 Invalid: ConfigMap \"\" is invalid: metadata.name: Required value: name or "
       "generateName is required"},
      {"POST", "/apis/example.com/v1/namespaces/n/widgets",
       "{'metadata':{'name':'v'},'spec':{'size':-1}}",
       "422 Invalid: Widget.example.com \"v\" is invalid: spec.size: Invalid value: -1: should be "
       "greater than or equal to 0"},
      {"POST", "/api/v1/namespaces/n/configmaps?dryRun=Some", "{'metadata':{'name':'a'}}",
       "422 Invalid: CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
       "[\"Some\"]: supported values: \"All\""},
      {"POST", "/api/v1/namespaces/n/configmaps", "{'metadata':{'name':'a','finalizers':['hold']}}",
       "422 Invalid: ConfigMap \"a\" is invalid: metadata.finalizers: Invalid value: \"hold\": "
       "name "
       "is not qualified"},
      {"POST", kWidgetsPath, "{'kind':'Gadget','metadata':{'name':'v'}}",
       "422 Invalid: Widget.example.com \"\" is invalid: kind: Invalid value: \"Gadget\": must be "
       "Widget"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.method, c.target, c.text);
    CHECK(outcome(world.send(c.method, c.target, c.text)) == c.outcome);
  }
  CHECK(world.store.all(kube::kConfigMaps).empty());
}

TEST_CASE("server: a refusal has details, with a cause for each error") {
  World world;
  CHECK(body(world.get(kW)).get("details") ==
        json("{'name':'w','group':'example.com','kind':'widgets'}"));
  CHECK(body(world.post(kWidgetsPath, "{'metadata':{'name':'v'},'spec':{'size':-1}}"))
            .get("details") ==
        json("{'name':'v','group':'example.com','kind':'Widget','causes':[{'reason':"
             "'FieldValueInvalid','field':'spec.size','message':'Invalid value: -1: should be "
             "greater than or equal to 0'}]}"));
}

TEST_CASE("server: fields that the schema does not have") {
  World world;
  const std::string_view text = "{'metadata':{'name':'w'},'spec':{'sise':1,'colour':2,'size':3}}";
  const auto post = [&](std::string_view query) {
    return world.post(std::string(kWidgetsPath) + std::string(query), text);
  };
  CHECK(outcome(post("?fieldValidation=Strict")) ==
        "400 BadRequest: Widget in version \"v1\" cannot be handled as a Widget: strict decoding "
        "error: unknown field \"spec.colour\", unknown field \"spec.sise\"");
  CHECK(outcome(post("?fieldValidation=Sometimes")).substr(0, 11) == "422 Invalid");
  const auto ignored = post("?fieldValidation=Ignore&dryRun=All");
  CHECK(ignored.warnings.empty());
  CHECK(body(ignored).get("spec") == json("{'replicas':1,'size':3}"));
  const auto warned = post("");
  CHECK(warned.warnings ==
        std::vector<std::string>{"unknown field \"spec.colour\"", "unknown field \"spec.sise\""});
  CHECK(world.stored(kW).get("spec") == json("{'replicas':1,'size':3}"));
  CHECK(outcome(world.send("PATCH", kW + "?fieldValidation=Strict", "{'spec':{'sise':1}}",
                           "application/merge-patch+json"))
            .find(" \"\" is invalid: patch: Invalid value: ") != std::string::npos);
}

TEST_CASE("server: a dry run changes nothing") {
  World world;
  const auto made = world.post(std::string(kConfigMapsPath) + "?dryRun=All",
                               "{'metadata':{'name':'a'},'data':{'k':'v'}}");
  CHECK(made.status == 201);
  CHECK(body(made).get("metadata").get_string("uid") == "uid-1");
  CHECK(world.stored(kA).is_null());
  REQUIRE(outcome(world.post(kConfigMapsPath, "{'metadata':{'name':'a'}}")) == "201");
  const Json before = world.stored(kA);
  CHECK(outcome(world.send("PUT", kA + "?dryRun=All",
                           "{'metadata':{'name':'a'},'data':{'k':'w'}}")) == "200");
  CHECK(outcome(world.send("DELETE", kA + "?dryRun=All")) == "200");
  CHECK(outcome(world.send("DELETE", kA, "{'dryRun':['All']}")) == "200");
  CHECK(world.stored(kA) == before);
}

TEST_CASE("server: a PUT with a version is conditional on it") {
  World world;
  make_widget(world);
  const std::string stale = widget_with(world, [](Json& w) { w["spec"].set("size", 2); });
  const std::string first = widget_with(world, [](Json& w) { w["spec"].set("size", 3); });
  CHECK(outcome(world.send("PUT", kW, first)) == "200");
  CHECK(outcome(world.send("PUT", kW, stale)) ==
        "409 Conflict: Operation cannot be fulfilled on widgets.example.com \"w\": the object has "
        "been modified; please apply your changes to the latest version and try again");
  CHECK(outcome(world.send("PUT", kW, "{'metadata':{'name':'w'},'spec':{}}")) ==
        "422 Invalid: widgets.example.com \"w\" is invalid: metadata.resourceVersion: Invalid "
        "value: 0: must be specified for an update");
  // Kubernetes' own kinds are written without one, too.
  REQUIRE(outcome(world.post(kConfigMapsPath, "{'metadata':{'name':'a'}}")) == "201");
  CHECK(outcome(world.send("PUT", kA, "{'metadata':{'name':'a'},'data':{'k':'v'}}")) == "200");
  CHECK(world.stored(kA).get("data") == json("{'k':'v'}"));
  CHECK(outcome(world.send("PUT", kA, "{'metadata':{'name':'a','uid':'other'}}")) ==
        "409 Conflict: Operation cannot be fulfilled on configmaps \"a\": Precondition failed: UID "
        "in precondition: other, UID in object meta: uid-2");
  CHECK(outcome(world.send("PUT", kA, "{'metadata':{'name':'b'}}")) ==
        "400 BadRequest: the name of the object (b) does not match the name on the URL (a)");
  CHECK(outcome(
            world.send("PUT", std::string(kConfigMapsPath) + "/q", "{'metadata':{'name':'q'}}")) ==
        "404 NotFound: configmaps \"q\" not found");
}

TEST_CASE("server: a PUT cannot change what only the server sets") {
  World world;
  make_widget(world);
  const Json before = world.stored(kW).get("metadata");
  const std::string text = widget_with(world, [](Json& w) {
    w["metadata"].set("creationTimestamp", "2020-01-01T00:00:00Z").set("generation", 77);
  });
  REQUIRE(outcome(world.send("PUT", kW, text)) == "200");
  CHECK(world.stored(kW).get("metadata") == before);
}

TEST_CASE("server: generation counts changes of the spec") {
  World world;
  make_widget(world);
  const auto generation = [&] { return world.stored(kW).get("metadata").get_int("generation"); };
  CHECK(generation() == 1);
  world.send("PUT", kW, widget_with(world, [](Json& w) { w["metadata"]["labels"].set("a", "b"); }));
  CHECK(generation() == 1);
  world.send("PUT", kW, widget_with(world, [](Json& w) { w["spec"].set("size", 9); }));
  CHECK(generation() == 2);
  world.send("PUT", kW + "/status",
             widget_with(world, [](Json& w) { w["status"].set("phase", "on"); }));
  CHECK(generation() == 2);
}

TEST_CASE("server: the status is written through its subresource alone") {
  World world;
  make_widget(world);
  CHECK(world.stored(kW).find("status") == nullptr);
  world.send("PUT", kW, widget_with(world, [](Json& w) { w["status"].set("phase", "main"); }));
  CHECK(world.stored(kW).find("status") == nullptr);
  const auto change = [](Json& w) {
    w["status"].set("phase", "on");
    w["spec"].set("size", 100);
    w["metadata"]["labels"].set("a", "b");
  };
  REQUIRE(outcome(world.send("PUT", kW + "/status", widget_with(world, change))) == "200");
  CHECK(world.stored(kW).get("status") == json("{'phase':'on'}"));
  CHECK(world.stored(kW).get("spec") == json("{'replicas':1,'size':1}"));
  CHECK(world.stored(kW).get("metadata").find("labels") == nullptr);
  world.send("PUT", kW, widget_with(world, [](Json& w) {
               w.erase("status");
               w["spec"].set("size", 2);
             }));
  CHECK(world.stored(kW).get("status") == json("{'phase':'on'}"));
  CHECK(body(world.get(kW + "/status")).get_string("kind") == "Widget");
}

TEST_CASE("server: the scale subresource") {
  World world;
  make_widget(world, "{'replicas':2}");
  world.send("PATCH", kW + "/status", "{'status':{'replicas':1,'selector':'a=b'}}",
             "application/merge-patch+json");
  const Json scale = body(world.get(kW + "/scale"));
  CHECK(scale.get_string("kind") == "Scale");
  CHECK(scale.get("spec") == json("{'replicas':2}"));
  CHECK(scale.get("status") == json("{'replicas':1,'selector':'a=b'}"));
  CHECK(outcome(world.send("PATCH", kW + "/scale", "{'spec':{'replicas':5}}",
                           "application/merge-patch+json")) == "200");
  CHECK(world.stored(kW).get("spec").get_int("replicas") == 5);
  CHECK(body(world.send("PUT", kW + "/scale", "{'metadata':{'name':'w'},'spec':{'replicas':7}}"))
            .get("spec")
            .get_int("replicas") == 7);
  CHECK(outcome(world.send("PUT", kW + "/scale",
                           "{'metadata':{'name':'w','resourceVersion':'1'},"
                           "'spec':{'replicas':8}}"))
            .substr(0, 12) == "409 Conflict");
  CHECK(outcome(world.get(std::string(kWidgetsPath) + "/q/scale")) ==
        "404 NotFound: widgets.example.com \"q\" not found");
  CHECK(outcome(world.get("/api/v1/namespaces/n/configmaps/a/scale")) ==
        "404: 404 page not found\n");
}

TEST_CASE("server: metadata is checked") {
  World world;
  struct Case {
    std::string_view metadata, error;
  };
  const Case cases[] = {
      {"{'name':'a','labels':{'a b':'c'}}", "metadata.labels: Invalid value: \"a b\": name part"},
      {"{'name':'a','labels':{'a':'b c'}}", "metadata.labels: Invalid value: \"b c\": a valid"},
      {"{'name':'a','annotations':{'/':'c'}}", "metadata.annotations: Invalid value: \"/\": name"},
      {"{'name':'a','ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p'}]}",
       "metadata.ownerReferences[0].uid: Required value: must not be empty"},
      {"{'name':'a','ownerReferences':["
       "{'apiVersion':'v1','kind':'Pod','name':'p','uid':'1','controller':true},"
       "{'apiVersion':'v1','kind':'Pod','name':'q','uid':'2','controller':true}]}",
       "Only one reference can have Controller set to true. Found \"true\" in references for Pod/p "
       "and Pod/q"},
      {"{'name':'a','finalizers':['a b']}", "metadata.finalizers: Invalid value: \"a b\""},
      {"{'name':'A'}", "metadata.name: Invalid value: \"A\""},
  };
  for (const auto& c : cases) {
    const std::string text = "{'metadata':" + std::string(c.metadata) + "}";
    const std::string result = outcome(world.post(kConfigMapsPath, text));
    CAPTURE(text, result);
    CHECK(result.starts_with("422 Invalid: ConfigMap "));
    CHECK_THAT(result, kube::test::contains(c.error));
  }
}

TEST_CASE("server: what a pending write is begun again for") {
  World world;
  make_widget(world);
  const auto begin = [&](std::string_view method, std::string text, std::string type) {
    kube::server::Request request;
    request.method = method;
    request.target = kW;
    request.content_type = std::move(type);
    request.body = print_json(json(text));
    return std::get<kube::server::PendingWrite>(world.api.begin(std::move(request)));
  };
  auto patch = begin("PATCH", "{'spec':{'size':5}}", "application/merge-patch+json");
  auto put = begin("PUT", widget_with(world, [](Json& w) { w["spec"].set("size", 6); }),
                   "application/json");
  world.send("PATCH", kW, "{'metadata':{'labels':{'a':'b'}}}", "application/merge-patch+json");
  auto again = world.api.finish(std::move(patch));
  REQUIRE(std::holds_alternative<kube::server::PendingWrite>(again));
  auto done = world.api.finish(std::get<kube::server::PendingWrite>(std::move(again)));
  CHECK(outcome(std::get<kube::server::Response>(done)) == "200");
  CHECK(world.stored(kW).get("spec").get_int("size") == 5);
  CHECK(world.stored(kW).get("metadata").get("labels") == json("{'a':'b'}"));
  CHECK(outcome(std::get<kube::server::Response>(world.api.finish(std::move(put)))).substr(0, 12) ==
        "409 Conflict");
}

TEST_CASE("server: admission may change a pending write") {
  World world;
  kube::server::Request request;
  request.method = "POST";
  request.target = kWidgetsPath;
  request.body = print_json(json("{'metadata':{'generateName':'w-'},'spec':{'size':1}}"));
  auto write = std::get<kube::server::PendingWrite>(world.api.begin(request));
  CHECK(write.operation == "CREATE");
  CHECK(write.object.get("metadata").find("uid") == nullptr);
  write.object["spec"].set("size", 2);
  CHECK_FALSE(world.api.check(write));
  CHECK(write.key.name == "w-aaaa1");
  CHECK(outcome(std::get<kube::server::Response>(world.api.finish(write))) == "201");
  CHECK(world.stored(std::string(kWidgetsPath) + "/w-aaaa1").get("spec").get_int("size") == 2);
  auto refused = std::get<kube::server::PendingWrite>(world.api.begin(request));
  refused.object["spec"].set("size", -2);
  CHECK(outcome(*world.api.check(refused)).substr(0, 11) == "422 Invalid");
}

TEST_CASE("server: the bound of an object is that of etcd, and leaves room for its deletion") {
  World world;
  const auto map_of = [](std::size_t size) {
    Json map = json("{'metadata':{'name':'a','finalizers':['x.io/keep']}}");
    map.set("data", Json::object({{"k", std::string(size, 'x')}}));
    return print_json(map);
  };
  const std::size_t limit = kube::server::kStoredLimits.max_bytes;
  const auto refused = [&](std::size_t size) {
    const std::string why = outcome(world.post(kConfigMapsPath, map_of(size)));
    CHECK_THAT(why, Catch::StartsWith("413 RequestEntityTooLarge: Request entity too large: limit "
                                      "is 1572864 bytes, and the object would have ") &&
                        Catch::Contains("ConfigMap \"a\": split it"));
    return std::stoul(why.substr(why.find("have ") + 5));
  };
  const std::size_t most = limit - (refused(limit) - limit);
  CHECK(refused(most + 1) == limit + 1);
  REQUIRE(outcome(world.post(kConfigMapsPath, map_of(most))) == "201");
  CHECK_THAT(outcome(world.send("PATCH", kA, "{'data':{'l':'x'}}", "application/merge-patch+json")),
             Catch::StartsWith("413"));
  CHECK(outcome(world.send("DELETE", kA, R"({"propagationPolicy":"Foreground"})")) == "200");
  CHECK(world.stored(kA).get("metadata").find("deletionTimestamp"));
  CHECK(outcome(world.get(kConfigMapsPath)) == "200");
  CHECK_THAT(outcome(world.post(kConfigMapsPath, map_of(2 * limit))),
             Catch::StartsWith("413") && Catch::Contains("limit is 3145728 bytes"));
}

TEST_CASE("server: a field manager is a text") {
  World world;
  const auto by = [&world](std::string_view manager) {
    return outcome(
        world.post(std::string(kConfigMapsPath) + "?fieldManager=" + std::string(manager),
                   "{'metadata':{'generateName':'x'}}"));
  };
  CHECK(by("%c3%a4") == "201");
  CHECK_THAT(by("a%ff"), Catch::StartsWith("422") && Catch::Contains("byte 1 is not UTF-8"));
  CHECK_THAT(by("%0a"), Catch::Contains("byte 0 is a control character"));
  world.user_agent = "a\xff\nb/1";
  const char* const kObject = "{'metadata':{'name':'a'},'data':{'k':'v'}}";
  REQUIRE(outcome(world.post(kConfigMapsPath, kObject)) == "201");
  CHECK_THAT(world.managers(kA), Catch::StartsWith("ab Update"));
}
