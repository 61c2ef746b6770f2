// These tests check which watch events enqueue which objects, and in which form caches keep
// objects.
#include "kube/manager/pending_status_writes.hh"
#include "kube/manager/plan_runner.hh"
#include "kube/model/json_text.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

Json from(std::string_view text) {
  return *kube::parse_json(text);
}

// One TrainJob n/j with its JobSet, a Job and a Pod, all cached.
struct RoutingFixture : trainer::test::IdleManager {
  // A status write of this process; `answer` is called when the request arrives.
  void write_status(const std::string& controller, const kube::ObjectKey& key,
                    const std::string& uid, bool is_minor, const std::function<Json()>& answer) {
    const kube::Resource& resource = controller == "jobset" ? kJobSets : kTrainJobs;
    api.on("PATCH", kube::api_path(resource, key) + "/status")
        .reply([&](const kube::ReceivedRequest&) {
          return kube::ScriptedReply(200, kube::print_json(answer()));
        });
    kube::Plan plan;
    plan.status_patch = Json::object({{"status", Json::object()}});
    if (is_minor) plan.status_change = kube::Plan::StatusChange::kCounters;
    auto& plan_runner = context(controller).plan_runner;
    if (is_minor) {  // counters have waited long enough
      plan_runner.delay_of(kube::Debounce::kCounters, uid);
      clock.advance(std::chrono::milliseconds(3'000));
    }
    kube::ObjectRef object{key, uid, "1"};
    REQUIRE(kube::run_task(io, plan_runner.run(std::move(object), std::move(plan))));
  }

  int version = 10;
  Json job = from(R"({"metadata":{"name":"j-node-0","namespace":"n","uid":"u3",
      "ownerReferences":[{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","uid":"u2","controller":true}]},
      "spec":{"parallelism":2},"status":{"active":2,"ready":0}})");
  Json pod = from(R"({"metadata":{"name":"j-node-0-0-abcde","namespace":"n","uid":"u4",
      "labels":{"jobset.sigs.k8s.io/jobset-name":"j","jobset.sigs.k8s.io/replicatedjob-name":"node"},
      "managedFields":[{"manager":"kubelet","operation":"Update"}]},
      "spec":{"containers":[{"name":"node"}],"nodeName":"n1"},"status":{"phase":"Pending"}})");

  RoutingFixture() {
    seen(trainjobs(), from(R"({"metadata":{"name":"j","namespace":"n","uid":"u1"}})"));
    seen(jobsets(), from(R"({"metadata":{"name":"j","namespace":"n","uid":"u2"}})"));
    seen(jobs(), job);
    seen(pods(), pod);
    enqueued.clear();
  }

  template <class T>
  void seen(kube::ObjectCache<T>& objects, Json object) {
    object["metadata"].set("resourceVersion", std::to_string(++version));
    REQUIRE(objects.upsert(kube::print_json(object)));
  }
};

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(RoutingFixture, "a change of fields that no view has enqueues nothing") {
  pod["status"].set("podIP", "10.0.0.1").set("hostIP", "192.168.0.1");
  pod["metadata"]["managedFields"].push_back(Json::object({{"manager", "scheduler"}}));
  seen(pods(), pod);
  job["status"].set("uncountedTerminatedPods", Json::object());
  job["metadata"].set("annotations", Json::object({{"example.com/note", "-"}}));
  seen(jobs(), job);
  CHECK(enqueued.empty());
  // The newest version is cached nevertheless.
  CHECK(pods().find({"n", "j-node-0-0-abcde"})->resource_version == std::to_string(version - 1));
  CHECK(jobs().find({"n", "j-node-0"})->resource_version == std::to_string(version));
}

TEST_CASE_METHOD(RoutingFixture, "a pod that changes enqueues its TrainJob for its counters") {
  pod["status"].set("phase", "Running");
  seen(pods(), pod);
  CHECK(enqueued == Keys{"trainjob_controller n/j for counters"});
  pod["status"].set("conditions", Json::array({from(R"({"type":"Ready","status":"True"})")}));
  seen(pods(), pod);
  pod["metadata"].set("deletionTimestamp", "2026-01-01T00:00:00Z");
  seen(pods(), pod);
  CHECK(enqueued == Keys(3, "trainjob_controller n/j for counters"));
}

TEST_CASE_METHOD(RoutingFixture, "what an agent of in-place restarts writes enqueues the JobSet") {
  pod["metadata"].set("annotations",
                      Json::object({{"jobset.sigs.k8s.io/in-place-restart-attempt", "1"}}));
  seen(pods(), pod);
  CHECK(enqueued == Keys{"trainjob_controller n/j for counters", "jobset n/j soon"});
  enqueued.clear();
  pod["status"].set("podIP", "10.0.0.1");
  seen(pods(), pod);
  CHECK(enqueued.empty());
  REQUIRE(pods().remove(kube::print_json(pod)));
  CHECK(enqueued == Keys{"trainjob_controller n/j for counters", "jobset n/j soon"});
}

TEST_CASE_METHOD(RoutingFixture,
                 "a Job enqueues its JobSet, at once when it has ended or is deleted") {
  job["status"].set("ready", 2);
  seen(jobs(), job);
  CHECK(enqueued == Keys{"jobset n/j for counters"});
  job["status"].set("conditions", Json::array({from(R"({"type":"Complete","status":"True"})")}));
  seen(jobs(), job);
  job["metadata"].set("resourceVersion", std::to_string(++version));
  REQUIRE(jobs().remove(kube::print_json(job)));
  CHECK(enqueued == Keys{"jobset n/j for counters", "jobset n/j now", "jobset n/j now"});
}

TEST_CASE_METHOD(RoutingFixture,
                 "a JobSet enqueues its TrainJob, sooner where it may say more than counters") {
  Json jobset = from(
      R"({"kind":"JobSet","metadata":{"name":"j","namespace":"n","uid":"u2"},"status":{"restarts":1}})");
  seen(jobsets(), jobset);
  CHECK(enqueued == Keys{"jobset n/j now", "trainjob_controller n/j soon"});
  enqueued.clear();

  // By this process; the answer comes before the event.
  const auto written = [&](std::int32_t restarts, bool is_minor) {
    Json answer = jobset;
    answer["metadata"].set("resourceVersion", std::to_string(++version));
    answer["status"].set("restarts", restarts);
    write_status("jobset", {"n", "j"}, "u2", is_minor, [&] { return answer; });
  };
  SECTION("counters that this process wrote") {
    written(2, true);
    CHECK(enqueued == Keys{"trainjob_controller n/j for counters"});
  }
  SECTION("another status that this process wrote") {
    written(2, false);
    CHECK(enqueued == Keys{"jobset n/j soon", "trainjob_controller n/j soon"});
  }
  SECTION("one that is new, and one that is deleted") {
    jobset["metadata"].set("resourceVersion", std::to_string(++version));
    REQUIRE(jobsets().remove(kube::print_json(jobset)));
    CHECK(enqueued == Keys{"jobset n/j now", "trainjob_controller n/j now"});
    enqueued.clear();
    jobset["metadata"].set("uid", "u3");
    seen(jobsets(), jobset);
    CHECK(enqueued == Keys{"jobset n/j now", "trainjob_controller n/j for counters"});
  }
}

TEST_CASE_METHOD(
    RoutingFixture,
    "a status of this process counts as its own where its event comes before its answer") {
  Json trainjob =
      from(R"({"kind":"TrainJob","metadata":{"name":"k","namespace":"n","uid":"u4"},"status":{}})");
  seen(trainjobs(), trainjob);
  enqueued.clear();
  const auto write = [&](bool is_minor, const std::function<void()>& meanwhile) {
    write_status("trainjob_controller", {"n", "k"}, "u4", is_minor, [&] {
      trainjob["status"].set("phase", "Pending");
      seen(trainjobs(), trainjob);
      Json answer = trainjob;
      answer["metadata"].set("resourceVersion", std::to_string(version));
      if (meanwhile) meanwhile();
      CHECK(enqueued.empty());
      return answer;
    });
  };
  SECTION("counters") {
    write(true, {});
    CHECK(enqueued.empty());
  }
  SECTION("more than counters") {
    write(false, {});
    CHECK(enqueued == Keys{"trainjob_controller n/k soon"});
  }
  SECTION("another client has written since") {
    write(true, [&] {
      trainjob["spec"].set("suspend", true);
      seen(trainjobs(), trainjob);
    });
    CHECK(enqueued == Keys{"trainjob_controller n/k now"});
  }
  SECTION("another object of the name is reported at once") {
    write_status("trainjob_controller", {"n", "j"}, "u1", true, [&] {
      seen(trainjobs(), from(R"({"metadata":{"name":"j","namespace":"n","uid":"u7"}})"));
      CHECK(enqueued == Keys{"trainjob_controller n/j now"});
      return Json::object({{"kind", "Status"}});
    });
  }
  // After that, a change enqueues as usual.
  enqueued.clear();
  trainjob["status"].set("phase", "Running");
  seen(trainjobs(), trainjob);
  CHECK(enqueued == Keys{"trainjob_controller n/k now"});
}

TEST_CASE("versions that arrive during a status write are recorded until it ends") {
  using Outcome = kube::PendingStatusWrites::Outcome;
  kube::PendingStatusWrites pending;
  const kube::ObjectKey key{"n", "k"};
  CHECK_FALSE(pending.record(key, "1"));
  auto write = pending.begin(key);
  CHECK(pending.end(*write, "2") == Outcome::kNothing);
  write = pending.begin(key);
  CHECK(pending.record(key, "2"));
  CHECK_FALSE(pending.record({"n", "other"}, "2"));
  CHECK(pending.end(*write, "2") == Outcome::kOwnWrite);
  write = pending.begin(key);
  CHECK(pending.record(key, "3"));
  CHECK(pending.end(*write, "") == Outcome::kOtherWrites);
  write = pending.begin(key);
  CHECK(pending.record(key, "4"));
  CHECK(pending.record(key, "5"));
  CHECK(pending.end(*write, "4") == Outcome::kOtherWrites);
  // A write whose frame was destroyed records nothing.
  pending.begin(key).reset();
  CHECK_FALSE(pending.record(key, "6"));
}

TEST_CASE_METHOD(RoutingFixture,
                 "suspended and finished objects are compressed, and read unchanged") {
  const struct {
    const char* members;
    bool is_compressed;
  } cases[] = {
      {R"({"spec":{"suspend":true}})", true},
      {R"({"spec":{"suspend":false}})", false},
      {R"({"spec":{"suspend":"true"}})", false},
      {R"({"spec":{"runPolicy":{"suspend":true}}})", true},
      {R"({"spec":{"runPolicy":"suspend"}})", false},
      {R"({})", false},
      {R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})", true},
      {R"({"status":{"conditions":[{"type":"Suspended","status":"False"},{"type":"Failed","status":"True"}]}})",
       true},
      {R"({"status":{"conditions":[{"type":"Completed","status":"True"}]}})", true},
      {R"({"status":{"conditions":[{"type":"Succeeded","status":"True"}]}})", true},
      {R"({"status":{"conditions":[{"type":"Complete","status":"False"}]}})", false},
      {R"({"status":{"conditions":[{"type":"Suspended","status":"True"}]}})", false},
      {R"({"status":{"conditions":"Complete"}})", false},
  };
  // This is a script in the form in which the SDK sends one with each job.
  std::string script;
  for (int line = 0; line < 60; ++line) script += "loss[" + std::to_string(line * line) + "]\n";
  for (const auto& c : cases) {
    CAPTURE(c.members);
    for (auto* objects : {&trainjobs(), &jobsets()}) {
      Json object = from(c.members);
      object.set("metadata",
                 from(R"({"name":"k","namespace":"n","uid":"u9","managedFields":[{}]})"));
      object["spec"].set("script", script);
      seen(*objects, object);
      seen(*objects, object);  // the second one is compressed against the first
      const auto stored = objects->find({"n", "k"});
      REQUIRE(stored);
      if (c.is_compressed) {
        CHECK(stored->body.stored_size() < stored->body.size() / 4);
      } else {
        CHECK(stored->body.stored_size() == stored->body.size());
      }
      const Json read = *stored->object();
      CHECK(*read.find_path({"spec", "script"}) == Json(script));
      CHECK(!read.find_path({"metadata", "managedFields"}));
      for (const char* member : {"spec", "status"}) {
        const Json* given = object.find(member);
        CHECK((given ? *given : Json()) == (read.find(member) ? *read.find(member) : Json()));
      }
    }
  }
}

TEST_CASE_METHOD(RoutingFixture, "the answer of an own write is compressed like a watched object") {
  for (const auto& resource : {kTrainJobs, kJobSets}) {
    Json object = from(R"({"metadata":{"name":"k","namespace":"n","uid":"u9"},
                           "spec":{"suspend":true}})");
    object.set("kind", resource.kind);
    object["spec"].set("script", std::string(2'000, 'x'));
    object["metadata"].set("resourceVersion", std::to_string(++version));
    auto& objects = resource == kTrainJobs ? trainjobs() : jobsets();
    static_cast<kube::AnyObjectCache&>(objects).update_if_newer(kube::print_json(object));
    const auto stored = objects.find({"n", "k"});
    REQUIRE(stored);
    CHECK(stored->body.stored_size() < 300);
    CHECK(stored->object()->find_path({"spec", "script"})->as_string().size() == 2'000);
  }
}

TEST_CASE("an object is cached as its text, without members that are never read") {
  const struct {
    const char* text;
    const char* kept;
  } cases[] = {
      {R"({"kind":"TrainJob","apiVersion":"v9","metadata":{"name":"j","managedFields":[{"x":[]}],"resourceVersion":"1"},"spec":{"b":1,"a":[null]}})",
       R"({"kind":"TrainJob","apiVersion":"v9","metadata":{"name":"j","resourceVersion":"1"},"spec":{"b":1,"a":[null]}})"},
      // An item of a list of built-in kinds does not say what it is.
      {R"({"metadata":{"name":"j","resourceVersion":"1"}})",
       R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":{"name":"j","resourceVersion":"1"}})"},
      {R"({"apiVersion":"a","kind":"b","metadata":{"annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"{\"metadata\":{}}\n"},"name":"j","resourceVersion":"1"}})",
       R"({"apiVersion":"a","kind":"b","metadata":{"annotations":{"a":"b"},"name":"j","resourceVersion":"1"}})"},
  };
  for (const auto& c : cases) {
    const auto stored = kube::StoredObjectTransform(kTrainJobs)(c.text);
    REQUIRE(stored);
    CHECK(stored->body.text() == c.kept);
    CHECK(stored->object_key == kube::ObjectKey{"", "j"});
    CHECK(stored->resource_version == "1");
    CHECK(*stored->object() == from(c.kept));
  }
}

TEST_CASE("a text without a readable head is no object") {
  for (const char* text :
       {"", "{}", "[1]", "{\"metadata\":{\"name\":\"j\"}}",
        "{\"metadata\":{\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"j\",\"resourceVersion\":\"1\"},\"spec\":{",
        "{\"metadata\":{\"name\":\"j\",\"resourceVersion\":\"1\"},\"spec\":\"\xff\"}"}) {
    INFO(text);
    CHECK_FALSE(kube::StoredObjectTransform(kTrainJobs)(text));
  }
  const std::string deep(300, '[');
  CHECK_FALSE(kube::StoredObjectTransform(kTrainJobs)(
      R"({"metadata":{"name":"j","resourceVersion":"1"},"spec":)" + deep + std::string(300, ']') +
      "}"));
  // Only the end of its body is searched: decoding it shows that it is no object.
  const auto stored = kube::StoredObjectTransform(kTrainJobs)(
      R"({"metadata":{"name":"j","resourceVersion":"1"},"spec":{"a":nothing}})");
  REQUIRE(stored);
  CHECK(stored->object()->is_null());
}
