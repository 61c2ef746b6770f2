// Lists, watches and logs.
#include <fmt/format.h>

#include "kube/model/resources.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/server_world.hh"

using kube::Json;
using kube::kConfigMaps;
using kube::test::body;
using kube::test::json;
using kube::test::kConfigMapsPath;
using kube::test::kPodsPath;
using kube::test::outcome;
using kube::test::World;

namespace {

void make(World& world, std::string_view name, std::string_view labels = "{}") {
  REQUIRE(
      outcome(world.post(kConfigMapsPath, fmt::format("{{'metadata':{{'name':'{}','labels':{}}}}}",
                                                      name, labels))) == "201");
}

void label(World& world, std::string_view name, std::string_view labels) {
  REQUIRE(outcome(world.send("PATCH", fmt::format("{}/{}", kConfigMapsPath, name),
                             fmt::format("{{'metadata':{{'labels':{}}}}}", labels),
                             "application/merge-patch+json")) == "200");
}

std::string names_of(const Json& list) {
  std::string names;
  for (const Json& item : list.get_array("items"))
    names += std::string(item.get("metadata").get_string("name")) + " ";
  return names;
}

// "ADDED a 12" a line.
std::string events(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    const Json event = json(line);
    const Json& metadata = event.get("object").get("metadata");
    text += fmt::format("{} {} {}\n", event.get_string("type"), metadata.get_string("name"),
                        metadata.get_string("resourceVersion"));
  }
  return text;
}

// Collects the lines of a watch for all changes from now on.
std::shared_ptr<std::vector<std::string>> follow(World& world, std::string_view target) {
  auto lines = std::make_shared<std::vector<std::string>>();
  kube::server::Watch watch = world.watch(target);
  *lines = watch.initial;
  world.store.subscribe([lines, line = watch.line](const kube::server::Change& change) {
    lines->push_back(line(change));
  });
  return lines;
}

}  // namespace

TEST_CASE("server: lists") {
  World world;
  for (const auto* name : {"c", "a", "b"}) make(world, name, "{'l':'1'}");
  label(world, "b", "{'l':'2'}");
  world.store.put(kube::kNamespaces, json("{'metadata':{'name':'m','uid':'m'}}"));
  REQUIRE(outcome(world.post("/api/v1/namespaces/m/configmaps", "{'metadata':{'name':'a'}}")) ==
          "201");
  const Json list = body(world.get(kConfigMapsPath));
  CHECK(names_of(list) == "a b c ");
  CHECK(list.get_string("kind") == "ConfigMapList");
  CHECK(list.get_string("apiVersion") == "v1");
  CHECK(list.get("metadata") ==
        json(fmt::format("{{'resourceVersion':'{}'}}", world.store.version())));
  CHECK(names_of(body(world.get("/api/v1/configmaps"))) == "a a b c ");
  CHECK(names_of(body(world.get("/api/v1/namespaces/q/configmaps"))).empty());
  CHECK(names_of(body(world.get("/api/v1/configmaps?labelSelector=l%3D1"))) == "a c ");
  CHECK(names_of(body(world.get("/api/v1/configmaps?fieldSelector=metadata.name%3Da"))) == "a a ");
  CHECK(outcome(world.get("/api/v1/configmaps?labelSelector=a%20b")).substr(0, 14) ==
        "400 BadRequest");
  CHECK(outcome(world.get("/api/v1/configmaps?fieldSelector=data.x%3Da")) ==
        "400 BadRequest: \"data.x\" is not a known field selector: only \"metadata.name\", "
        "\"metadata.namespace\"");
}

TEST_CASE("server: lists in pages") {
  World world;
  for (const auto* name : {"a", "b", "c", "d", "e"}) make(world, name);
  const Json first = body(world.get(std::string(kConfigMapsPath) + "?limit=2"));
  CHECK(names_of(first) == "a b ");
  CHECK(first.get("metadata").get_int("remainingItemCount") == 3);
  const std::string token(first.get("metadata").get_string("continue"));
  const std::string version(first.get("metadata").get_string("resourceVersion"));
  make(world, "cc");
  const Json second =
      body(world.get(fmt::format("{}?limit=3&continue={}", kConfigMapsPath, token)));
  CHECK(names_of(second) == "c cc d ");
  CHECK(second.get("metadata").get_string("resourceVersion") == version);
  const std::string next(second.get("metadata").get_string("continue"));
  const Json last = body(world.get(fmt::format("{}?limit=3&continue={}", kConfigMapsPath, next)));
  CHECK(names_of(last) == "e ");
  CHECK(last.get("metadata").find("continue") == nullptr);
  CHECK(outcome(world.get(std::string(kConfigMapsPath) + "?continue=x")) ==
        "400 BadRequest: continue key is not valid");
  world.store.compact(kConfigMaps);
  CHECK(outcome(world.get(fmt::format("{}?continue={}", kConfigMapsPath, token))).substr(0, 11) ==
        "410 Expired");
}

TEST_CASE("server: lists of a version") {
  World world;
  make(world, "a");
  const auto version = world.store.version();
  const auto list = [&](std::int64_t asked, std::string_view match) {
    return outcome(
        world.get(fmt::format("{}?resourceVersion={}{}", kConfigMapsPath, asked, match)));
  };
  CHECK(list(0, "") == "200");
  CHECK(list(version, "") == "200");
  CHECK(list(version, "&resourceVersionMatch=Exact") == "200");
  make(world, "b");
  CHECK(list(version, "") == "200");
  CHECK(list(version, "&resourceVersionMatch=NotOlderThan") == "200");
  CHECK(list(version, "&resourceVersionMatch=Exact").substr(0, 11) == "410 Expired");
  CHECK(list(version + 100, "") ==
        fmt::format("504 Timeout: Timeout: Too large resource version: {}, current: {}",
                    version + 100, version + 1));
  CHECK(outcome(world.get(std::string(kConfigMapsPath) + "?resourceVersion=x")).substr(0, 14) ==
        "400 BadRequest");
}

TEST_CASE("server: a watch begins with what is there, or after a version") {
  World world;
  make(world, "a");  // 12
  make(world, "b");  // 13
  CHECK(events(world.watch("/api/v1/configmaps?watch=true").initial) == "ADDED a 12\nADDED b 13\n");
  CHECK(events(world.watch("/api/v1/configmaps?watch=1&resourceVersion=0").initial) ==
        "ADDED a 12\nADDED b 13\n");
  CHECK(events(world.watch("/api/v1/configmaps?watch=true&resourceVersion=12").initial) ==
        "ADDED b 13\n");
  CHECK(world.watch("/api/v1/configmaps?watch=true&resourceVersion=13").initial.empty());
  world.send("DELETE", std::string(kConfigMapsPath) + "/a");  // 14
  CHECK(events(world.watch("/api/v1/configmaps?watch=true&resourceVersion=12").initial) ==
        "ADDED b 13\nDELETED a 14\n");
}

TEST_CASE("server: a watch of a version that is gone says 410 in its stream") {
  World world;
  make(world, "a");
  make(world, "b");
  world.store.compact(kConfigMaps);
  const auto watch = world.watch("/api/v1/configmaps?watch=true&resourceVersion=12");
  CHECK(watch.is_ended);
  REQUIRE(watch.initial.size() == 1);
  const Json event = json(watch.initial[0]);
  CHECK(event.get_string("type") == "ERROR");
  CHECK(event.get("object").get_int("code") == 410);
  CHECK(event.get("object").get_string("reason") == "Expired");
  CHECK(event.get("object").get_string("message") == "too old resource version: 12 (13)");
}

TEST_CASE("server: objects enter and leave what a watch selects") {
  World world;
  make(world, "a", "{'l':'1'}");  // 12
  make(world, "b", "{'l':'2'}");  // 13
  const auto lines = follow(world, "/api/v1/configmaps?watch=true&labelSelector=l%3D1");
  label(world, "b", "{'l':'1'}");                             // 14
  label(world, "b", "{'m':'1'}");                             // 15
  label(world, "a", "{'l':'2'}");                             // 16
  label(world, "a", "{'l':'3'}");                             // 17
  world.send("DELETE", std::string(kConfigMapsPath) + "/a");  // 18
  world.send("DELETE", std::string(kConfigMapsPath) + "/b");  // 19
  REQUIRE(outcome(world.post("/api/v1/namespaces/n/secrets",
                             "{'metadata':{'name':'s','labels':{'l':'1'}}}")) == "201");
  CHECK(events(*lines) == "ADDED a 12\nADDED b 14\nMODIFIED b 15\nDELETED a 16\nDELETED b 19\n");
}

TEST_CASE("server: a watch of a namespace, and of one object") {
  World world;
  const auto of_m = follow(world, "/api/v1/namespaces/m/configmaps?watch=true");
  const auto of_a =
      follow(world, std::string(kConfigMapsPath) + "?watch=true&fieldSelector=metadata.name%3Da");
  make(world, "a");  // 12
  make(world, "b");
  CHECK(events(*of_m).empty());
  CHECK(events(*of_a) == "ADDED a 12\n");
}

TEST_CASE("server: bookmarks and times of watches") {
  World world;
  CHECK_FALSE(world.watch("/api/v1/configmaps?watch=true").bookmark);
  const auto watch =
      world.watch("/api/v1/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=7");
  CHECK(watch.timeout == std::chrono::seconds(7));
  CHECK(json(watch.bookmark(77)) ==
        json("{'type':'BOOKMARK','object':{'kind':'ConfigMap','apiVersion':'v1','metadata':"
             "{'resourceVersion':'77'}}}"));
  CHECK(outcome(world.get("/api/v1/configmaps?watch=true&sendInitialEvents=true")) ==
        "422 Invalid: ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");
}

TEST_CASE("server: logs") {
  World world;
  REQUIRE(outcome(world.post(kPodsPath,
                             "{'metadata':{'name':'one'},'spec':{'containers':"
                             "[{'name':'a'}]}}")) == "201");
  REQUIRE(outcome(world.post(kPodsPath,
                             "{'metadata':{'name':'two'},'spec':{'initContainers':[{'name':'i'}],"
                             "'containers':[{'name':'a'},{'name':'b'}]}}")) == "201");
  const auto ask = [&](std::string_view path) {
    kube::server::Request request;
    request.target = fmt::format("{}/{}", kPodsPath, path);
    return world.api.begin(std::move(request));
  };
  const auto refusal = [&](std::string_view path) {
    return outcome(std::get<kube::server::Response>(ask(path)));
  };
  const auto log = std::get<kube::server::LogQuery>(
      ask("one/log?follow=true&tailLines=5&limitBytes=9&sinceSeconds=60&timestamps=true"));
  CHECK(log.pod == kube::ObjectKey{"n", "one"});
  CHECK(log.container == "a");
  CHECK(log.is_followed);
  CHECK(log.has_timestamps);
  CHECK_FALSE(log.is_previous);
  CHECK(log.tail_lines == 5);
  CHECK(log.limit_bytes == 9);
  CHECK(log.since->to_string() == "2025-12-31T23:59:00Z");
  CHECK(std::get<kube::server::LogQuery>(ask("two/log?container=i")).container == "i");
  CHECK(refusal("two/log") ==
        "400 BadRequest: a container name must be specified for pod two, choose one of: [a b]");
  CHECK(refusal("two/log?container=q") == "400 BadRequest: container q is not valid for pod two");
  CHECK(refusal("q/log") == "404 NotFound: pods \"q\" not found");
  const std::string invalid = "422 Invalid: PodLogOptions \"one\" is invalid: ";
  CHECK(refusal("one/log?tailLines=-1") ==
        invalid + "tailLines: Invalid value: -1: must be greater than or equal to 0");
  CHECK(refusal("one/log?limitBytes=0") ==
        invalid + "limitBytes: Invalid value: 0: must be greater than 0");
  CHECK(refusal("one/log?sinceSeconds=0") ==
        invalid + "sinceSeconds: Invalid value: 0: must be greater than 0");
  CHECK(refusal("one/log?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z") ==
        invalid + "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified");
  CHECK(refusal("one/log?tailLines=many") ==
        "400 BadRequest: strconv.ParseInt: parsing \"many\": invalid syntax");
  CHECK(refusal("one/log?sinceTime=noon").starts_with("400 BadRequest: parsing time \"noon\""));
}

TEST_CASE("server: what needs a kubelet is refused with a way out, whatever the method") {
  World world;
  const auto refusal = [&](const char* method, std::string_view subresource) {
    kube::server::Request request;
    request.method = method;
    request.target = fmt::format("{}/one/{}", kPodsPath, subresource);
    return outcome(std::get<kube::server::Response>(world.api.begin(std::move(request))));
  };
  CHECK(refusal("POST", "exec?command=ls") ==
        "405 MethodNotAllowed: pods/exec is not served here: a pod is processes of this machine, "
        "use its own tools");
  CHECK(refusal("GET", "attach").starts_with("405 MethodNotAllowed: pods/attach is not served"));
  CHECK(refusal("PATCH", "ephemeralcontainers").starts_with("405 MethodNotAllowed: pods/eph"));
  CHECK(refusal("POST", "portforward") ==
        "405 MethodNotAllowed: pods/portforward is not served here: connect to the address of the "
        "pod, which `kubectl get pods -o wide` shows");
}

TEST_CASE("server: tables where the client wants them") {
  World world;
  make(world, "a");
  make(world, "b");
  const auto get = [&](std::string_view target, std::string accept) {
    kube::server::Request request;
    request.target = target;
    request.accept = std::move(accept);
    return world.api.handle(std::move(request));
  };
  const std::string accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  const auto table_of = [&](std::string_view target) {
    return body(std::get<kube::server::Response>(get(target, accept)));
  };
  CHECK(table_of(kConfigMapsPath).get("rows").size() == 2);
  const Json one = table_of(std::string(kConfigMapsPath) + "/a");
  CHECK(one.get("rows").size() == 1);
  CHECK(one.get("metadata").get_string("resourceVersion") ==
        world.stored(std::string(kConfigMapsPath) + "/a")
            .get("metadata")
            .get_string("resourceVersion"));
  CHECK(body(std::get<kube::server::Response>(get(kConfigMapsPath, "application/json")))
            .get_string("kind") == "ConfigMapList");
  const auto watch = std::get<kube::server::Watch>(get("/api/v1/configmaps?watch=true", accept));
  CHECK(json(watch.initial[0]).get("object").get_string("kind") == "Table");
}
