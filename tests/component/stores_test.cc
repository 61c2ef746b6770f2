// Which watch events wake which loop.
#include "controller/core/stores.hh"

#include "kube/model/json_text.hh"
#include "tests/component/listeners.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

Json from(std::string_view text) {
  return *kube::parse_json(text);
}

// One TrainJob n/j with its JobSet, a Job and a Pod, all of them known.
struct Fixture {
  std::vector<std::string> told;
  Stores stores{listeners()};
  int version = 10;
  Json job = from(R"({"metadata":{"name":"j-node-0","namespace":"n","uid":"u3",
      "ownerReferences":[{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","uid":"u2","controller":true}]},
      "spec":{"parallelism":2},"status":{"active":2,"ready":0}})");
  Json pod = from(R"({"metadata":{"name":"j-node-0-0-abcde","namespace":"n","uid":"u4",
      "labels":{"jobset.sigs.k8s.io/jobset-name":"j","jobset.sigs.k8s.io/replicatedjob-name":"node"},
      "managedFields":[{"manager":"kubelet","operation":"Update"}]},
      "spec":{"containers":[{"name":"node"}],"nodeName":"n1"},"status":{"phase":"Pending"}})");

  Fixture() {
    seen(stores.trainjobs, from(R"({"metadata":{"name":"j","namespace":"n","uid":"u1"}})"));
    seen(stores.jobsets, from(R"({"metadata":{"name":"j","namespace":"n","uid":"u2"}})"));
    seen(stores.jobs, job);
    seen(stores.pods, pod);
    told.clear();
  }

  Stores::Listeners listeners() {
    Stores::Listeners all = trainer::test::deaf_listeners();
    const auto tell = [this](std::string what) {
      return [this, what](const kube::ObjectKey& key, Stores::Debounce debounce) {
        told.push_back(what + " " + key.to_string() +
                       (debounce == Stores::Debounce::kNone    ? " now"
                        : debounce == Stores::Debounce::kShort ? " soon"
                                                               : " for counters"));
      };
    };
    all.trainjob = tell("trainjob");
    all.jobset = tell("jobset");
    return all;
  }

  template <class T>
  void seen(kube::ObjectCache<T>& store, Json object) {
    object["metadata"].set("resourceVersion", std::to_string(++version));
    REQUIRE(store.upsert(kube::print_json(object)));
  }
};

using Told = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(Fixture, "what nobody looks at wakes nobody") {
  pod["status"].set("podIP", "10.0.0.1").set("hostIP", "192.168.0.1");
  pod["metadata"]["managedFields"].push_back(Json::object({{"manager", "scheduler"}}));
  seen(stores.pods, pod);
  job["status"].set("uncountedTerminatedPods", Json::object());
  job["metadata"].set("annotations", Json::object({{"example.com/note", "-"}}));
  seen(stores.jobs, job);
  CHECK(told.empty());
  // The newest version is kept all the same.
  CHECK(stores.pods.find({"n", "j-node-0-0-abcde"})->resource_version ==
        std::to_string(version - 1));
  CHECK(stores.jobs.find({"n", "j-node-0"})->resource_version == std::to_string(version));
}

TEST_CASE_METHOD(Fixture, "a pod that changes wakes its TrainJob for its counters") {
  pod["status"].set("phase", "Running");
  seen(stores.pods, pod);
  CHECK(told == Told{"trainjob n/j for counters"});
  pod["status"].set("conditions", Json::array({from(R"({"type":"Ready","status":"True"})")}));
  seen(stores.pods, pod);
  pod["metadata"].set("deletionTimestamp", "2026-01-01T00:00:00Z");
  seen(stores.pods, pod);
  CHECK(told == Told(3, "trainjob n/j for counters"));
}

TEST_CASE_METHOD(Fixture, "what an agent of in-place restarts writes wakes the JobSet") {
  pod["metadata"].set("annotations",
                      Json::object({{"jobset.sigs.k8s.io/in-place-restart-attempt", "1"}}));
  seen(stores.pods, pod);
  CHECK(told == Told{"trainjob n/j for counters", "jobset n/j soon"});
  told.clear();
  pod["status"].set("podIP", "10.0.0.1");
  seen(stores.pods, pod);
  CHECK(told.empty());
  REQUIRE(stores.pods.remove(kube::print_json(pod)));
  CHECK(told == Told{"trainjob n/j for counters", "jobset n/j soon"});
}

TEST_CASE_METHOD(Fixture, "a Job wakes its JobSet, at once when it has ended or is gone") {
  job["status"].set("ready", 2);
  seen(stores.jobs, job);
  CHECK(told == Told{"jobset n/j for counters"});
  job["status"].set("conditions", Json::array({from(R"({"type":"Complete","status":"True"})")}));
  seen(stores.jobs, job);
  job["metadata"].set("resourceVersion", std::to_string(++version));
  REQUIRE(stores.jobs.remove(kube::print_json(job)));
  CHECK(told == Told{"jobset n/j for counters", "jobset n/j now", "jobset n/j now"});
}

TEST_CASE_METHOD(Fixture,
                 "a JobSet wakes its TrainJob, sooner where it may say more than counters") {
  Json jobset = from(
      R"({"kind":"JobSet","metadata":{"name":"j","namespace":"n","uid":"u2"},"status":{"restarts":1}})");
  seen(stores.jobsets, jobset);
  CHECK(told == Told{"jobset n/j now", "trainjob n/j soon"});
  told.clear();

  const auto written = [&](std::int32_t restarts, bool is_minor) {
    jobset["metadata"].set("resourceVersion", std::to_string(++version));
    jobset["status"].set("restarts", restarts);
    const auto sent = stores.expect_status(kJobSets, {"n", "j"});
    stores.offer_status(*sent, kube::print_json(jobset), is_minor);
  };
  SECTION("counters that we wrote") {
    written(2, true);
    CHECK(told == Told{"trainjob n/j for counters"});
  }
  SECTION("another status that we wrote") {
    written(2, false);
    CHECK(told == Told{"jobset n/j soon", "trainjob n/j soon"});
  }
  SECTION("one that is new, and one that is gone") {
    jobset["metadata"].set("resourceVersion", std::to_string(++version));
    REQUIRE(stores.jobsets.remove(kube::print_json(jobset)));
    CHECK(told == Told{"jobset n/j now", "trainjob n/j now"});
    told.clear();
    jobset["metadata"].set("uid", "u3");
    seen(stores.jobsets, jobset);
    CHECK(told == Told{"jobset n/j now", "trainjob n/j for counters"});
  }
}

TEST_CASE_METHOD(Fixture, "a status of ours counts as ours where the watch tells of it first") {
  Json trainjob =
      from(R"({"kind":"TrainJob","metadata":{"name":"k","namespace":"n","uid":"u4"},"status":{}})");
  seen(stores.trainjobs, trainjob);
  told.clear();
  const kube::ObjectKey name{"n", "k"};
  const auto sent = stores.expect_status(kTrainJobs, name);
  trainjob["status"].set("phase", "Pending");
  seen(stores.trainjobs, trainjob);
  CHECK(told.empty());
  trainjob["metadata"].set("resourceVersion", std::to_string(version));
  const std::string answer = kube::print_json(trainjob);

  SECTION("counters") {
    stores.offer_status(*sent, answer, true);
    CHECK(told.empty());
  }
  SECTION("more than counters") {
    stores.offer_status(*sent, answer, false);
    CHECK(told == Told{"trainjob n/k soon"});
  }
  SECTION("somebody has written since") {
    trainjob["spec"].set("suspend", true);
    seen(stores.trainjobs, trainjob);
    CHECK(told.empty());
    stores.offer_status(*sent, answer, true);
    CHECK(told == Told{"trainjob n/k now"});
  }
  SECTION("it was somebody else's, and ours was refused") {
    stores.give_up_status(*sent);
    CHECK(told == Told{"trainjob n/k now"});
  }
  // From then on the next change is one like any other.
  told.clear();
  trainjob["status"].set("phase", "Running");
  seen(stores.trainjobs, trainjob);
  CHECK(told == Told{"trainjob n/k now"});
}

TEST_CASE_METHOD(Fixture, "another object of the name is told of while a status is on its way") {
  const auto sent = stores.expect_status(kTrainJobs, {"n", "j"});
  seen(stores.trainjobs, from(R"({"metadata":{"name":"j","namespace":"n","uid":"u7"}})"));
  CHECK(told == Told{"trainjob n/j now"});
}

TEST_CASE_METHOD(Fixture, "whoever lets go of a status that is on its way holds nothing back") {
  Json jobset = from(R"({"kind":"JobSet","metadata":{"name":"k","namespace":"n","uid":"u6"}})");
  seen(stores.jobsets, jobset);
  told.clear();
  stores.expect_status(kJobSets, {"n", "k"}).reset();
  jobset["metadata"].set("labels", Json::object({{"a", "b"}}));
  seen(stores.jobsets, jobset);
  CHECK(told == Told{"jobset n/k now"});
}

TEST_CASE_METHOD(Fixture, "what is suspended or finished is kept packed and read as it was") {
  const struct {
    const char* members;
    bool is_compressed;
  } cases[] = {
      {R"({"spec":{"suspend":true}})", true},
      {R"({"spec":{"suspend":false}})", false},
      {R"({"spec":{"suspend":"true"}})", false},
      {R"({})", false},
      {R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})", true},
      {R"({"status":{"conditions":[{"type":"Suspended","status":"False"},{"type":"Failed","status":"True"}]}})",
       true},
      {R"({"status":{"conditions":[{"type":"Completed","status":"True"}]}})", true},
      {R"({"status":{"conditions":[{"type":"Complete","status":"False"}]}})", false},
      {R"({"status":{"conditions":[{"type":"Suspended","status":"True"}]}})", false},
      {R"({"status":{"conditions":"Complete"}})", false},
  };
  // A script, as the SDK sends one with each job.
  std::string script;
  for (int line = 0; line < 60; ++line) script += "loss[" + std::to_string(line * line) + "]\n";
  for (const auto& c : cases) {
    CAPTURE(c.members);
    for (auto* store : {&stores.trainjobs, &stores.jobsets}) {
      Json object = from(c.members);
      object.set("metadata",
                 from(R"({"name":"k","namespace":"n","uid":"u9","managedFields":[{}]})"));
      object["spec"].set("script", script);
      seen(*store, object);
      seen(*store, object);  // the second one has the first to be packed against
      const auto stored = store->find({"n", "k"});
      REQUIRE(stored);
      if (c.is_compressed) {
        CHECK(stored->body.kept() < stored->body.size() / 4);
      } else {
        CHECK(stored->body.kept() == stored->body.size());
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

TEST_CASE_METHOD(Fixture, "the answer to a write of ours is packed as what is watched") {
  for (const auto& resource : {kTrainJobs, kJobSets}) {
    Json object = from(R"({"metadata":{"name":"k","namespace":"n","uid":"u9"},
                           "spec":{"suspend":true}})");
    object.set("kind", resource.kind);
    object["spec"].set("script", std::string(2'000, 'x'));
    object["metadata"].set("resourceVersion", std::to_string(++version));
    stores.update_if_newer(resource, kube::print_json(object));
    const auto& store = resource == kTrainJobs ? stores.trainjobs : stores.jobsets;
    const auto stored = store.find({"n", "k"});
    REQUIRE(stored);
    CHECK(stored->body.kept() < 300);
    CHECK(stored->object()->find_path({"spec", "script"})->as_string().size() == 2'000);
  }
}

TEST_CASE("an object is kept as the text that came, without what nobody reads") {
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
    const auto stored = transform_stored(c.text, kTrainJobs);
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
    CHECK_FALSE(transform_stored(text, kTrainJobs));
  }
  const std::string deep(300, '[');
  CHECK_FALSE(transform_stored(R"({"metadata":{"name":"j","resourceVersion":"1"},"spec":)" + deep +
                                   std::string(300, ']') + "}",
                               kTrainJobs));
  // Of its body only the end is looked for: whoever looks at the object finds that it is none.
  const auto stored = transform_stored(
      R"({"metadata":{"name":"j","resourceVersion":"1"},"spec":{"a":nothing}})", kTrainJobs);
  REQUIRE(stored);
  CHECK(stored->object()->is_null());
}
