// DELETE, finalizers, grace, and the garbage collector.
#include <fmt/format.h>

#include "kube/model/resources.hh"
#include "kube/server/collector.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/server_world.hh"

using kube::Json;
using kube::kConfigMaps;
using kube::kPods;
using kube::server::Collector;
using kube::test::body;
using kube::test::json;
using kube::test::kConfigMapsPath;
using kube::test::kPodsPath;
using kube::test::kWidgetsPath;
using kube::test::outcome;
using kube::test::World;

namespace {

std::string path_of(std::string_view collection, std::string_view name) {
  return fmt::format("{}/{}", collection, name);
}

void make(World& world, std::string_view collection, std::string_view metadata,
          std::string_view spec = "{}") {
  REQUIRE(outcome(world.post(collection,
                             fmt::format("{{'metadata':{},'spec':{}}}", metadata, spec))) == "201");
}

std::string owner(World& world, std::string_view collection, std::string_view name,
                  bool is_blocking = true) {
  const std::string uid(world.stored(path_of(collection, name)).get("metadata").get_string("uid"));
  return fmt::format(
      "{{'apiVersion':'v1','kind':'ConfigMap','name':'{}','uid':'{}','blockOwnerDeletion':{}}}",
      name, uid, is_blocking);
}

Collector collector_of(World& world) {
  return {world.kinds, world.store, [&world] { return world.now; }};
}

// Returns how many steps it takes.
int collect(Collector& collector) {
  int steps = 0;
  for (; collector.has_work() && steps < 100; ++steps) collector.step();
  return steps;
}

bool exists(World& world, std::string_view collection, std::string_view name) {
  return !world.stored(path_of(collection, name)).is_null();
}

}  // namespace

TEST_CASE("deletion: an object without finalizers goes at once") {
  World world;
  make(world, kConfigMapsPath, "{'name':'a'}");
  const auto gone = world.send("DELETE", path_of(kConfigMapsPath, "a"));
  CHECK(gone.status == 200);
  CHECK(body(gone) == json("{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Success',"
                           "'details':{'name':'a','kind':'configmaps','uid':'uid-1'}}"));
  CHECK(outcome(world.send("DELETE", path_of(kConfigMapsPath, "a"))) ==
        "404 NotFound: configmaps \"a\" not found");
}

TEST_CASE("deletion: an object with finalizers goes with the last one") {
  World world;
  make(world, kWidgetsPath, "{'name':'w','finalizers':['x.io/a','x.io/b']}");
  const std::string path = path_of(kWidgetsPath, "w");
  const auto ending = world.send("DELETE", path);
  CHECK(ending.status == 200);
  CHECK(body(ending).get("metadata").get_string("deletionTimestamp") == "2026-01-01T00:00:00Z");
  CHECK(body(ending).get("metadata").get_int("deletionGracePeriodSeconds", -1) == 0);
  CHECK(body(ending).get("metadata").get_int("generation") == 2);
  const Json stored = world.stored(path);
  world.pass(std::chrono::seconds(9));
  world.send("DELETE", path);
  CHECK(world.stored(path).get("metadata").get_string("deletionTimestamp") ==
        stored.get("metadata").get_string("deletionTimestamp"));
  const auto finalize = [&](std::string_view list) {
    return outcome(world.send("PATCH", path,
                              fmt::format("{{'metadata':{{'finalizers':{}}}}}", list),
                              "application/merge-patch+json"));
  };
  CHECK(finalize("['x.io/a','x.io/c']")
            .find("metadata.finalizers: Forbidden: no new finalizers can be added if the object is "
                  "being deleted, found new finalizers []string{\"x.io/c\"}") != std::string::npos);
  CHECK(finalize("['x.io/b']") == "200");
  CHECK(exists(world, kWidgetsPath, "w"));
  CHECK(finalize("null") == "200");
  CHECK_FALSE(exists(world, kWidgetsPath, "w"));
}

TEST_CASE("deletion: a name that is still ending is taken") {
  World world;
  make(world, kWidgetsPath, "{'name':'w','finalizers':['x.io/a']}");
  world.send("DELETE", path_of(kWidgetsPath, "w"));
  CHECK(outcome(world.post(kWidgetsPath, "{'metadata':{'name':'w'}}")) ==
        "409 AlreadyExists: object is being deleted: widgets.example.com \"w\" already exists");
}

TEST_CASE("deletion: preconditions and options") {
  World world;
  make(world, kConfigMapsPath, "{'name':'a'}");
  const std::string path = path_of(kConfigMapsPath, "a");
  CHECK(outcome(world.send("DELETE", path, "{'preconditions':{'uid':'other'}}")) ==
        "409 Conflict: Operation cannot be fulfilled on ConfigMap \"a\": the UID in the "
        "precondition (other) does not match the UID in record (uid-1). The object might have been "
        "deleted and then recreated");
  CHECK(outcome(world.send("DELETE", path, "{'preconditions':{'resourceVersion':'1'}}")) ==
        "409 Conflict: Operation cannot be fulfilled on ConfigMap \"a\": the ResourceVersion in "
        "the precondition (1) does not match the ResourceVersion in record (12). The object might "
        "have been modified");
  CHECK(outcome(world.send("DELETE", path, "{'propagationPolicy':'Sometimes'}")) ==
        "422 Invalid: DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported "
        "value: \"Sometimes\": supported values: \"Background\", \"Foreground\", \"Orphan\", "
        "\"nil\"");
  CHECK(outcome(world.send("DELETE", path, "[]")).substr(0, 14) == "400 BadRequest");
  CHECK(outcome(world.send("DELETE", path,
                           "{'preconditions':{'uid':'uid-1','resourceVersion':'12'}}")) == "200");
}

TEST_CASE("deletion: propagation is kept as a finalizer") {
  World world;
  const std::string path = path_of(kConfigMapsPath, "a");
  const auto finalizers = [&] { return world.stored(path).get("metadata").get("finalizers"); };
  make(world, kConfigMapsPath, "{'name':'a'}");
  world.send("DELETE", path + "?propagationPolicy=Foreground");
  CHECK(finalizers() == json("['foregroundDeletion']"));
  world.send("DELETE", path, "{'propagationPolicy':'Orphan'}");
  CHECK(finalizers() == json("['orphan']"));
  world.send("DELETE", path);
  CHECK(finalizers() == json("['orphan']"));
  world.send("DELETE", path, "{'propagationPolicy':'Background'}");
  CHECK_FALSE(exists(world, kConfigMapsPath, "a"));
  make(world, kConfigMapsPath, "{'name':'a'}");
  world.send("DELETE", path, "{'orphanDependents':true}");
  CHECK(finalizers() == json("['orphan']"));
}

TEST_CASE("deletion: a Job's pods are kept where the client does not say what becomes of them") {
  struct Case {
    std::string_view options, finalizers;  // empty: gone
    bool has_warning;
  };
  const Case cases[] = {
      {"", "['orphan']", true},
      {"{'gracePeriodSeconds':0}", "['orphan']", true},
      {"{'propagationPolicy':'Orphan'}", "['orphan']", false},
      {"{'propagationPolicy':'Foreground'}", "['foregroundDeletion']", false},
      {"{'propagationPolicy':'Background'}", "", false},
      {"{'orphanDependents':false}", "", false},
  };
  constexpr std::string_view kJobsPath = "/apis/batch/v1/namespaces/n/jobs";
  const std::string path = path_of(kJobsPath, "j");
  for (const auto& c : cases) {
    CAPTURE(c.options);
    World world;
    make(world, kJobsPath, "{'name':'j'}");
    const auto response = world.send("DELETE", path, c.options);
    CHECK(response.status == 200);
    CHECK(response.warnings.size() == (c.has_warning ? 1 : 0));
    CHECK(exists(world, kJobsPath, "j") == !c.finalizers.empty());
    if (c.finalizers.empty()) continue;
    CHECK(world.stored(path).get("metadata").get("finalizers") == json(c.finalizers));
    // Options of an earlier request stay.
    world.send("DELETE", path);
    CHECK(world.stored(path).get("metadata").get("finalizers") == json(c.finalizers));
  }
  World world;
  make(world, kJobsPath, "{'name':'j'}");
  CHECK(world.send("DELETE", kJobsPath).warnings.size() == 1);
  CHECK(world.stored(path).get("metadata").get("finalizers") == json("['orphan']"));
}

TEST_CASE("deletion: pods have time to end") {
  struct Case {
    std::string_view spec, phase, options;
    int grace;  // -1: gone
  };
  const Case cases[] = {
      {"{'terminationGracePeriodSeconds':30}", "", "", -1},
      {"{'nodeName':'m','terminationGracePeriodSeconds':30}", "Running", "", 30},
      {"{'nodeName':'m','terminationGracePeriodSeconds':30}", "Pending", "", 30},
      {"{'nodeName':'m','terminationGracePeriodSeconds':30}", "Succeeded", "", -1},
      {"{'nodeName':'m','terminationGracePeriodSeconds':30}", "Failed", "", -1},
      {"{'nodeName':'m','terminationGracePeriodSeconds':30}", "Running", "{'gracePeriodSeconds':5}",
       5},
      {"{'nodeName':'m','terminationGracePeriodSeconds':30}", "Running",
       "{'gracePeriodSeconds':-7}", 1},
      {"{'nodeName':'m','terminationGracePeriodSeconds':30}", "Running", "{'gracePeriodSeconds':0}",
       -1},
      {"{'nodeName':'m'}", "Running", "", -1},
  };
  for (const auto& c : cases) {
    CAPTURE(c.spec, c.phase, c.options);
    World world;
    make(world, kPodsPath, "{'name':'p'}", c.spec);
    const std::string path = path_of(kPodsPath, "p");
    world.send("PATCH", path + "/status", fmt::format("{{'status':{{'phase':'{}'}}}}", c.phase),
               "application/merge-patch+json");
    CHECK(outcome(world.send("DELETE", path, c.options)) == "200");
    const Json pod = world.stored(path);
    CHECK(pod.get("metadata").get_int("deletionGracePeriodSeconds", -1) == c.grace);
    if (c.grace < 0) continue;
    CHECK(pod.get("metadata").get_string("deletionTimestamp") ==
          (world.now + std::chrono::seconds(c.grace)).to_string());
  }
}

TEST_CASE("deletion: a pod that is ending may be given less time") {
  World world;
  make(world, kPodsPath, "{'name':'p'}", "{'nodeName':'m','terminationGracePeriodSeconds':30}");
  const std::string path = path_of(kPodsPath, "p");
  const auto ends = [&] {
    return std::string(world.stored(path).get("metadata").get_string("deletionTimestamp"));
  };
  world.send("DELETE", path);
  CHECK(ends() == "2026-01-01T00:00:30Z");
  world.pass(std::chrono::seconds(2));
  world.send("DELETE", path);
  world.send("DELETE", path, "{'gracePeriodSeconds':60,'propagationPolicy':'Foreground'}");
  CHECK(ends() == "2026-01-01T00:00:30Z");
  // The way in which its dependents are deleted changes only with its time.
  CHECK(world.stored(path).get("metadata").find("finalizers") == nullptr);
  world.send("DELETE", path, "{'gracePeriodSeconds':10}");
  CHECK(ends() == "2026-01-01T00:00:10Z");
  world.send("DELETE", path, "{'gracePeriodSeconds':1}");
  CHECK(ends() == "2026-01-01T00:00:02Z");
  world.send("DELETE", path, "{'gracePeriodSeconds':0}");
  CHECK_FALSE(exists(world, kPodsPath, "p"));
}

TEST_CASE("deletion: a pod with a finalizer stays after its time") {
  World world;
  make(world, kPodsPath, "{'name':'p','finalizers':['x.io/track']}",
       "{'nodeName':'m','terminationGracePeriodSeconds':30}");
  const std::string path = path_of(kPodsPath, "p");
  world.send("DELETE", path);
  world.send("PATCH", path, "{'metadata':{'finalizers':null}}", "application/merge-patch+json");
  CHECK(exists(world, kPodsPath, "p"));  // its node has not let it go
  world.send("DELETE", path, "{'gracePeriodSeconds':0}");
  CHECK_FALSE(exists(world, kPodsPath, "p"));
}

TEST_CASE("deletion: a collection, as far as it is selected") {
  World world;
  make(world, kConfigMapsPath, "{'name':'a','labels':{'l':'1'}}");
  make(world, kConfigMapsPath, "{'name':'b','labels':{'l':'2'}}");
  make(world, kConfigMapsPath, "{'name':'c','labels':{'l':'1'},'finalizers':['x.io/f']}");
  const Json list =
      body(world.send("DELETE", std::string(kConfigMapsPath) + "?labelSelector=l%3D1"));
  CHECK(list.get_string("kind") == "ConfigMapList");
  CHECK(list.get_array("items").size() == 2);
  CHECK_FALSE(exists(world, kConfigMapsPath, "a"));
  CHECK(exists(world, kConfigMapsPath, "b"));
  CHECK(world.stored(path_of(kConfigMapsPath, "c")).get("metadata").find("deletionTimestamp"));
  CHECK(outcome(world.send("DELETE", "/api/v1/configmaps")).substr(0, 3) == "405");
}

TEST_CASE("collector: dependents go with the last of their owners") {
  World world;
  make(world, kConfigMapsPath, "{'name':'o1'}");
  make(world, kConfigMapsPath, "{'name':'o2'}");
  Collector collector = collector_of(world);
  const std::string one = owner(world, kConfigMapsPath, "o1");
  const std::string two = owner(world, kConfigMapsPath, "o2");
  make(world, kConfigMapsPath, fmt::format("{{'name':'of1','ownerReferences':[{}]}}", one));
  make(world, kConfigMapsPath,
       fmt::format("{{'name':'both','ownerReferences':[{},{}]}}", one, two));
  const std::string of_child = owner(world, kConfigMapsPath, "of1");
  make(world, kWidgetsPath,
       fmt::format("{{'name':'grandchild','ownerReferences':[{}]}}", of_child));
  collect(collector);
  CHECK(exists(world, kConfigMapsPath, "of1"));
  world.send("DELETE", path_of(kConfigMapsPath, "o1"));
  CHECK(collect(collector) < 10);
  CHECK_FALSE(exists(world, kConfigMapsPath, "of1"));
  CHECK_FALSE(exists(world, kWidgetsPath, "grandchild"));
  REQUIRE(exists(world, kConfigMapsPath, "both"));
  CHECK(world.stored(path_of(kConfigMapsPath, "both"))
            .get("metadata")
            .get_array("ownerReferences")
            .size() == 1);
  world.send("DELETE", path_of(kConfigMapsPath, "o2"));
  collect(collector);
  CHECK(world.store.all(kConfigMaps).empty());
}

TEST_CASE("collector: an object whose owner never was, or is elsewhere, goes") {
  World world;
  REQUIRE(outcome(world.post("/api/v1/namespaces", "{'metadata':{'name':'m'}}")) == "201");
  REQUIRE(outcome(world.post("/api/v1/namespaces/m/configmaps", "{'metadata':{'name':'o'}}")) ==
          "201");
  const std::string elsewhere = owner(world, "/api/v1/namespaces/m/configmaps", "o");
  make(world, kConfigMapsPath,
       "{'name':'a','ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'q','uid':'q'}]}");
  make(world, kConfigMapsPath, fmt::format("{{'name':'b','ownerReferences':[{}]}}", elsewhere));
  Collector collector = collector_of(world);  // begins with what is there
  collect(collector);
  CHECK_FALSE(exists(world, kConfigMapsPath, "a"));
  CHECK_FALSE(exists(world, kConfigMapsPath, "b"));
}

TEST_CASE("collector: in the foreground the dependents that block go first") {
  World world;
  make(world, kConfigMapsPath, "{'name':'o'}");
  Collector collector = collector_of(world);
  make(world, kPodsPath,
       fmt::format("{{'name':'p','ownerReferences':[{}]}}", owner(world, kConfigMapsPath, "o")),
       "{'nodeName':'m','terminationGracePeriodSeconds':30}");
  make(world, kWidgetsPath,
       fmt::format("{{'name':'w','finalizers':['x.io/f'],'ownerReferences':[{}]}}",
                   owner(world, kConfigMapsPath, "o", false)));
  world.send("DELETE", path_of(kConfigMapsPath, "o"), "{'propagationPolicy':'Foreground'}");
  collect(collector);
  CHECK(exists(world, kConfigMapsPath, "o"));
  CHECK(world.stored(path_of(kPodsPath, "p")).get("metadata").find("deletionTimestamp"));
  CHECK(world.stored(path_of(kWidgetsPath, "w")).get("metadata").find("deletionTimestamp"));
  world.send("DELETE", path_of(kPodsPath, "p"), "{'gracePeriodSeconds':0}");
  collect(collector);
  CHECK_FALSE(exists(world, kConfigMapsPath, "o"));
  CHECK(exists(world, kWidgetsPath, "w"));  // it does not block
}

TEST_CASE("collector: a chain is deleted in the foreground from its end") {
  World world;
  make(world, kConfigMapsPath, "{'name':'o'}");
  make(world, kConfigMapsPath,
       fmt::format("{{'name':'c','ownerReferences':[{}]}}", owner(world, kConfigMapsPath, "o")));
  make(world, kPodsPath,
       fmt::format("{{'name':'p','ownerReferences':[{}]}}", owner(world, kConfigMapsPath, "c")),
       "{'nodeName':'m','terminationGracePeriodSeconds':30}");
  Collector collector = collector_of(world);
  world.send("DELETE", path_of(kConfigMapsPath, "o"), "{'propagationPolicy':'Foreground'}");
  collect(collector);
  CHECK(exists(world, kConfigMapsPath, "o"));
  CHECK(exists(world, kConfigMapsPath, "c"));
  CHECK(world.stored(path_of(kPodsPath, "p")).get("metadata").find("deletionTimestamp"));
  world.store.erase(kPods, {"n", "p"});
  collect(collector);
  CHECK(world.store.all(kConfigMaps).empty());
}

TEST_CASE("collector: orphans lose their owner") {
  World world;
  make(world, kConfigMapsPath, "{'name':'o'}");
  Collector collector = collector_of(world);
  make(world, kConfigMapsPath,
       fmt::format("{{'name':'c','ownerReferences':[{}]}}", owner(world, kConfigMapsPath, "o")));
  world.send("DELETE", path_of(kConfigMapsPath, "o"), "{'propagationPolicy':'Orphan'}");
  collect(collector);
  CHECK_FALSE(exists(world, kConfigMapsPath, "o"));
  REQUIRE(exists(world, kConfigMapsPath, "c"));
  CHECK(world.stored(path_of(kConfigMapsPath, "c")).get("metadata").find("ownerReferences") ==
        nullptr);
}

TEST_CASE("collector: namespaces go when they are empty") {
  World world;
  Collector collector = collector_of(world);
  make(world, kConfigMapsPath, "{'name':'a'}");
  make(world, kPodsPath, "{'name':'p'}", "{'nodeName':'m','terminationGracePeriodSeconds':30}");
  CHECK(outcome(world.send("DELETE", "/api/v1/namespaces/n")) == "200");
  CHECK(world.stored("/api/v1/namespaces/n").get("status").get_string("phase") == "Terminating");
  CHECK(outcome(world.post(kConfigMapsPath, "{'metadata':{'name':'b'}}")) ==
        "403 Forbidden: configmaps \"b\" is forbidden: unable to create new content in namespace n "
        "because it is being terminated");
  collect(collector);
  CHECK_FALSE(exists(world, kConfigMapsPath, "a"));
  CHECK(world.stored(path_of(kPodsPath, "p")).get("metadata").find("deletionTimestamp"));
  CHECK_FALSE(world.stored("/api/v1/namespaces/n").is_null());
  world.send("DELETE", path_of(kPodsPath, "p"), "{'gracePeriodSeconds':0}");
  collect(collector);
  CHECK(world.stored("/api/v1/namespaces/n").is_null());
  REQUIRE(outcome(world.post("/api/v1/namespaces", "{'metadata':{'name':'default'}}")) == "201");
  CHECK(outcome(world.send("DELETE", "/api/v1/namespaces/default")) ==
        "403 Forbidden: namespaces \"default\" is forbidden: this namespace may not be deleted");
}
