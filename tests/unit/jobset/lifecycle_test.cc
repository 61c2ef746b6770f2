// Creation, success and plain failure: rows C1 to C12, C38 to C45 and C58 to C65 of the acceptance
// checklist.
#include "tests/unit/jobset/world.hh"

using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

namespace {

void complete_all(World& world) {
  for (const std::string& name : world.job_names()) world.complete(name);
}

}  // namespace

TEST_CASE("C1, C10: four Jobs with the JobSet's label, and one Service") {
  World world(test_js());
  world.settle();
  CHECK(world.jobs().size() == 4);
  for (const auto& [name, job] : world.jobs()) {
    CHECK(*job.find_path({"metadata", "labels", "jobset.sigs.k8s.io/jobset-name"}) == "test-js");
  }
  REQUIRE(world.services.size() == 1);
  const Json& service = world.services.at("test-js");
  CHECK(*service.find_path({"spec", "clusterIP"}) == "None");
  CHECK(*service.find_path({"spec", "publishNotReadyAddresses"}) == true);
  CHECK(*service.find_path({"spec", "selector"}) ==
        Json::object({{"jobset.sigs.k8s.io/jobset-name", "test-js"}}));
}

TEST_CASE("C2, C11, C41: all Jobs complete") {
  World world(test_js());
  world.settle();
  complete_all(world);
  world.settle();
  CHECK(world.condition("Completed") == "True");
  CHECK(world.terminal_state() == "Completed");
  CHECK(world.counters("replicated-job-a") == "ready 0 succeeded 1 failed 0 active 0 suspended 0");
  CHECK(world.counters("replicated-job-b") == "ready 0 succeeded 3 failed 0 active 0 suspended 0");
  CHECK(world.restarts() == "0/0");
  CHECK(texts(world.events) ==
        std::vector<std::string>{"Normal AllJobsCompleted: jobset completed successfully"});
  CHECK(world.events.back().end == kube::PlannedEvent::End::kSucceeded);
}

TEST_CASE("C3: a Job of an earlier JobSet of the same name is ignored") {
  World world(test_js());
  world.settle();
  Json foreign = world.job(kA);
  foreign["metadata"]["name"] = "other";
  foreign["metadata"]["labels"] = Json::object();
  foreign["metadata"]["ownerReferences"].as_array()[0]["uid"] = "another-uid";
  complete_all(world);
  world.add_foreign(foreign);
  world.settle();
  CHECK(world.condition("Completed") == "True");
  CHECK(world.jobs().size() == 5);
}

TEST_CASE("C4: all but one complete, the last is ready") {
  World world(test_js());
  world.settle();
  world.complete(kA);
  world.complete(kAllB[0]);
  world.complete(kAllB[1]);
  world.ready(kAllB[2]);
  world.settle();
  CHECK(world.terminal_state().empty());
  CHECK(world.counters("replicated-job-b") == "ready 1 succeeded 2 failed 0 active 1 suspended 0");
}

TEST_CASE("C5 to C8, C43: success policies") {
  struct Row {
    const char* about;
    const char* policy;
    std::vector<std::string> first;   // complete, and it goes on
    std::vector<std::string> second;  // complete, and it has ended
  };
  const Row rows[] = {
      {"C5", "{operator: All, targetReplicatedJobs: []}", {kA}, kAllB},
      {"C6",
       "{operator: All, targetReplicatedJobs: [replicated-job-b]}",
       {kA, kAllB[0]},
       {kAllB[1], kAllB[2]}},
      {"C7", "{operator: Any, targetReplicatedJobs: [replicated-job-b]}", {kA}, {kAllB[1]}},
      {"C8", "{operator: Any}", {}, {kAllB[2]}},
      {"C8 with the other job", "{operator: Any}", {}, {kA}},
  };
  for (const Row& row : rows) {
    INFO(row.about);
    World world(test_js(std::string("  successPolicy: ") + row.policy));
    world.settle();
    for (const auto& name : row.first) world.complete(name);
    world.settle();
    CHECK(world.terminal_state().empty());
    for (const auto& name : row.second) world.complete(name);
    // The pass that ends it deletes nothing; the next one deletes what still runs.
    const auto ending = world.context();
    CHECK(ending.actions.empty());
    CHECK(ending.is_status_first());
    CHECK(world.condition("Completed") == "True");
    world.settle();
    world.release_all();
    world.settle();
    CHECK(world.jobs().size() == row.first.size() + row.second.size());
    CHECK(world.terminal_state() == "Completed");
  }
}

TEST_CASE("an absent success policy means that all Jobs must complete") {
  World world(test_js());
  world.edit(Json::object({{"spec", Json::object({{"successPolicy", nullptr}})}}));
  world.settle();
  world.complete(kA);
  world.settle();
  CHECK(world.terminal_state().empty());
  for (const auto& name : kAllB) world.complete(name);
  world.settle();
  CHECK(world.terminal_state() == "Completed");
}

TEST_CASE("C9, C12, C44: without a failure policy the first failure ends it") {
  World world(test_js());
  world.settle();
  world.fail(kAllB[1]);
  const auto ending = world.context();
  CHECK(ending.actions.empty());
  CHECK(ending.is_status_first());
  CHECK_FALSE(ending.is_status_minor());
  world.settle();
  world.release_all();
  world.settle();
  CHECK(world.condition("Failed") == "True");
  CHECK(world.condition_reason("Failed") == "FailedJobs");
  CHECK(world.terminal_state() == "Failed");
  CHECK(world.job_names() == std::vector<std::string>{kAllB[1]});
  CHECK(
      texts(world.events) ==
      std::vector<std::string>{"Warning FailedJobs: jobset failed due to one or more job failures "
                               "(first failed job: test-js-replicated-job-b-1)"});
}

TEST_CASE("C38: a deleted Service comes back") {
  World world(test_js());
  world.settle();
  world.services.clear();
  world.settle();
  CHECK(world.services.count("test-js") == 1);
}

TEST_CASE("C39, C40: claims, kept or owned, for suspended JobSets too") {
  const std::string more = R"(
  suspend: true
  volumeClaimPolicies:
  - templates:
    - metadata: {name: data, labels: {a: b}, annotations: {c: d}}
      spec: {accessModes: [ReadWriteOnce]}
  - retentionPolicy: {whenDeleted: Retain}
    templates:
    - metadata: {name: model}
      spec: {accessModes: [ReadWriteMany]}
)";
  World world(test_js(more));
  world.settle();
  REQUIRE(world.claims.size() == 2);
  const Json& owned = world.claims.at("data-test-js");
  CHECK(*owned.find_path({"metadata", "labels"}) ==
        Json::object({{"a", "b"}, {"jobset.sigs.k8s.io/jobset-name", "test-js"}}));
  CHECK(*owned.find_path({"metadata", "annotations"}) == Json::object({{"c", "d"}}));
  CHECK(owned.find("metadata")->get_array("ownerReferences").size() == 1);
  CHECK(*owned.find_path({"spec", "accessModes"}) == Json::array({"ReadWriteOnce"}));
  CHECK(world.claims.at("model-test-js").find("metadata")->find("ownerReferences") == nullptr);
  CHECK(world.jobs().empty());
}

TEST_CASE("claims that may exist already are created before the Jobs that need them") {
  World world(test_js(R"(
  volumeClaimPolicies:
  - templates: [{metadata: {name: data}, spec: {}}]
)"));
  const auto first = world.context();
  std::map<std::string, int> planned;
  for (const auto& action : first.actions) {
    ++planned[action.resource.kind];
    if (action.resource.kind == "PersistentVolumeClaim") {
      CHECK(action.owner_uid == world.jobset().get("metadata").get_string("uid"));
      CHECK(action.unowned == kube::Action::Unowned::kAccept);
      CHECK(action.stage == 0);
      CHECK(action.failure_reason == "PVCCreationFailed");
    } else if (action.resource.kind == "Job") {
      CHECK(action.stage == 1);
    }
  }
  CHECK(planned["PersistentVolumeClaim"] == 1);
  CHECK(planned["Job"] == 4);
  world.settle();
  CHECK(world.jobs().size() == 4);
}

TEST_CASE("C42: counters follow the Jobs") {
  World world(test_js());
  world.settle();
  for (const std::string& name : world.job_names()) world.ready(name);
  const auto planned = world.context();
  CHECK(planned.is_status_minor());
  CHECK_FALSE(planned.is_status_first());
  CHECK(world.counters("replicated-job-a") == "ready 1 succeeded 0 failed 0 active 1 suspended 0");
  CHECK(world.counters("replicated-job-b") == "ready 3 succeeded 0 failed 0 active 3 suspended 0");
}

TEST_CASE("C45: a generated name names the Service") {
  World world(test_js());
  world.jobset()["metadata"]["name"] = "gen-x7k2p";
  world.settle();
  CHECK(world.services.count("gen-x7k2p") == 1);
}

TEST_CASE("C58 to C60: JobSets of other managers are left alone altogether") {
  for (const char* suspend : {"true", "false"}) {
    World world(test_js(std::string("  managedBy: acme.io/x\n  suspend: ") + suspend));
    const Json status = Json::object({{"restarts", 7}});
    world.edit(Json::object({{"status", status}}));
    world.settle();
    CHECK(world.jobs().empty());
    CHECK(world.services.empty());
    CHECK(*world.jobset().find("status") == status);
  }
  World reserved(test_js("  managedBy: jobset.sigs.k8s.io/jobset-controller"));
  reserved.settle();
  CHECK(reserved.jobs().size() == 4);
}

TEST_CASE("nothing is done for a JobSet that is being deleted") {
  World world(test_js());
  world.jobset()["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z";
  const auto planned = world.context();
  CHECK(planned.actions.empty());
  CHECK_FALSE(planned.status_patch.has_value());
}

TEST_CASE("C61, U14: a finished JobSet is removed after its time to live") {
  World world(test_js("  ttlSecondsAfterFinished: 5"));
  world.settle();
  world.fail(kA);
  world.settle();
  CHECK(world.condition("Failed") == "True");
  for (const auto& name : kAllB) {
    CHECK(world.job(name).find("metadata")->find("deletionTimestamp"));
  }
  CHECK_FALSE(world.is_jobset_deleted);
  world.now = world.now + std::chrono::seconds(2);
  CHECK(world.context().requeue_after == std::chrono::milliseconds(3000));
  world.now = world.now + std::chrono::seconds(3);
  world.settle();
  CHECK(world.is_jobset_deleted);
}

TEST_CASE("a time to live of zero ends in the pass after finishing; without one nothing expires") {
  for (const char* more : {"  ttlSecondsAfterFinished: 0", ""}) {
    World world(test_js(more));
    world.settle();
    complete_all(world);
    world.context();
    CHECK_FALSE(world.is_jobset_deleted);
    const auto next = world.context();
    CHECK(world.is_jobset_deleted == (*more != '\0'));
    CHECK_FALSE(next.requeue_after.has_value());
  }
}

TEST_CASE("U14: a finished JobSet without finish time is complained about once and kept") {
  World world(test_js("  ttlSecondsAfterFinished: 0"));
  world.edit(Json::object(
      {{"status",
        Json::object({{"conditions",
                       Json::array({Json::object({{"type", "Failed"}, {"status", "True"}})})}})}}));
  world.settle();
  CHECK_FALSE(world.is_jobset_deleted);
  REQUIRE(world.events.size() == 1);
  CHECK(world.events[0].reason == "MissingFinishTime");
}

TEST_CASE("C63, C64: sizes follow the JobSet where the gate is open") {
  for (const bool is_open : {true, false}) {
    Gates gates;
    gates.elastic_jobset = is_open;
    World world(test_js(), gates);
    world.settle();
    Json& spec = world.jobset()["spec"]["replicatedJobs"].as_array()[0]["template"]["spec"];
    spec["parallelism"] = 4;
    spec["completions"] = 4;
    world.settle();
    const Json& job = *world.job(kA).find("spec");
    CHECK(job.get_int("parallelism") == (is_open ? 4 : 1));
    CHECK(job.get_int("completions") == (is_open ? 4 : 1));
  }
}

TEST_CASE("C65: suspend may be set on a running JobSet") {
  World world(test_js());
  world.settle();
  world.set_suspend(true);
  world.settle();
  CHECK(world.suspended_jobs() == 4);
}

TEST_CASE("an unchanged JobSet costs nothing") {
  World world(test_js());
  world.settle();
  const int writes = world.status_writes;
  for (int i = 0; i < 3; ++i) {
    const auto planned = world.context();
    CHECK(planned.actions.empty());
    CHECK_FALSE(planned.status_patch.has_value());
    CHECK(planned.events.empty());
  }
  CHECK(world.status_writes == writes);
}

TEST_CASE("the order of replicatedJobsStatus is no reason to write") {
  World world(test_js());
  world.settle();
  auto& list = world.jobset()["status"]["replicatedJobsStatus"].as_array();
  REQUIRE(list.size() == 2);
  CHECK(list[0].get_string("name") == "replicated-job-b");
  std::swap(list[0], list[1]);
  CHECK_FALSE(world.context().status_patch.has_value());
}

TEST_CASE("U12: network options") {
  struct Row {
    const char* network;
    bool has_service;
    const char* name;
    bool publishes;
  };
  const Row rows[] = {
      {"{}", true, "test-js", true},
      {"{subdomain: ring}", true, "ring", true},
      {"{publishNotReadyAddresses: false}", true, "test-js", false},
      {"{enableDNSHostnames: false}", false, "", false},
  };
  for (const Row& row : rows) {
    INFO(row.network);
    World world(test_js(std::string("  network: ") + row.network));
    world.settle();
    CHECK(world.jobs().size() == 4);
    REQUIRE(world.services.size() == (row.has_service ? 1U : 0U));
    const Json* subdomain = world.job(kA).find_path({"spec", "template", "spec", "subdomain"});
    CHECK((subdomain != nullptr) == row.has_service);
    if (!row.has_service) continue;
    CHECK(*subdomain == row.name);
    REQUIRE(world.services.count(row.name) == 1);
    CHECK(*world.services.at(row.name).find_path({"spec", "publishNotReadyAddresses"}) ==
          row.publishes);
  }
}

TEST_CASE("an absent network means no Service and no subdomain") {
  World world(test_js());
  world.edit(Json::object({{"spec", Json::object({{"network", nullptr}})}}));
  world.settle();
  CHECK(world.services.empty());
  CHECK(world.jobs().size() == 4);
  CHECK(world.job(kA).find_path({"spec", "template", "spec", "subdomain"}) == nullptr);
}
