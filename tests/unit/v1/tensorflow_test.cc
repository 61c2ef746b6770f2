// These are rows T1 to T21 and TS1 to TS19 of the acceptance checklist, except those of
// common_test.cc.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

// "Worker: 2 succeeded, 1 running, 1 failed:1": phases by index; a failed pod may have an exit
// code.
void play(World& world, std::string_view role, std::string_view phases) {
  std::istringstream words{std::string(phases)};
  int index = 0;
  for (std::string phase; words >> phase; ++index) {
    const std::size_t colon = phase.find(':');
    std::optional<int> code;
    if (colon != phase.npos) code = std::stoi(phase.substr(colon + 1));
    if (phase.substr(0, colon) == "-") continue;
    if (phase.substr(0, colon) == "F" && !code) code = 1;
    const char* name = phase[0] == 'R' ? "Running" : phase[0] == 'S' ? "Succeeded" : "Failed";
    world.set_pod(fmt::format("p-{}-{}", role, index), name, code);
  }
}

}  // namespace

TEST_CASE("T1: pods and Services") {
  World one(make_job("TFJob", "Worker"));
  CHECK(one.names("Pod").size() == 1);
  CHECK(one.names("Service") == std::vector<std::string>{"p", "p-worker-0"});
  World six(make_job("TFJob", "Worker*4 PS*2"));
  CHECK(six.names("Pod").size() == 6);
  CHECK(six.names("Service").size() == 7);
}

TEST_CASE("T2, T3: counters and conditions as pods go on") {
  World world(make_job("TFJob", "Worker*4 PS*2"));
  CHECK(world.counters("Worker") == "");
  CHECK(world.conditions() == "Created");
  world.pod("p-worker-0", "Running");
  world.pod("p-ps-0", "Running");
  CHECK(world.conditions() == "Created Running");
  CHECK(world.message("Running") == "TFJobRunning: TFJob ns/p is running.");
  CHECK(world.counters("Worker") == "1 active");
  CHECK(world.counters("PS") == "1 active");
  for (const char* pod : {"p-worker-1", "p-worker-2", "p-worker-3"}) world.pod(pod, "Succeeded");
  CHECK(world.counters("Worker") == "1 active 3 succeeded");
  world.pod("p-worker-0", "Succeeded", 0);
  CHECK(world.conditions() == "Created Running! Succeeded");
  CHECK(world.message("Succeeded") == "TFJobSucceeded: TFJob ns/p successfully completed.");
  const int writes = world.writes;
  world.settle();
  CHECK(world.writes == writes);
}

TEST_CASE("T4: what is stored is read back") {
  const Json object = make_job("TFJob", "Worker",
                               "{successPolicy: AllWorkers, enableDynamicWorker: "
                               "true, runPolicy: {backoffLimit: 4}}");
  const V1Job job = read(object);
  CHECK(job.spec.successPolicy == "AllWorkers");
  CHECK(job.spec.enableDynamicWorker);
  CHECK(job.spec.runPolicy.backoffLimit == 4);
  CHECK(job.metadata.name == "p");
}

TEST_CASE("T6: what cleanPodPolicy leaves") {
  for (const auto& [phase, policy, left] :
       std::vector<std::tuple<const char*, const char*, std::size_t>>{{"Running", "All", 0},
                                                                      {"Running", "Running", 1},
                                                                      {"Succeeded", "Running", 5},
                                                                      {"Succeeded", "None", 5}}) {
    World world(make_job("TFJob", "Chief Worker*4",
                         fmt::format("runPolicy: {{cleanPodPolicy: {}}}", policy)));
    for (int i = 0; i < 4; ++i) world.pod(fmt::format("p-worker-{}", i), phase);
    world.pod("p-chief-0", "Succeeded", 0);
    INFO(phase << " " << policy);
    CHECK(world.names("Pod").size() == left);
  }
}

TEST_CASE("T7: a deadline leaves nothing under All") {
  World world(make_job("TFJob", "Worker*4 PS*2", "runPolicy: {cleanPodPolicy: All}"));
  world.advance(100);
  CHECK(world.names("Pod").size() == 6);
  World late(make_job("TFJob", "Worker*4 PS*2",
                      "runPolicy: {cleanPodPolicy: All, activeDeadlineSeconds: 2}"));
  late.all_pods("Running");
  late.advance(2);
  CHECK(late.names("Pod").empty());
  CHECK(late.names("Service").empty());
}

TEST_CASE("T8: four workers with a restart each reach backoffLimit 4") {
  World world(make_job("TFJob", "Worker*4",
                       "{runPolicy: {cleanPodPolicy: All, backoffLimit: 4}, roles: {Worker: "
                       "{restartPolicy: OnFailure}}}"));
  for (int i = 0; i < 4; ++i) {
    CHECK(world.names("Pod").size() == 4);
    world.pod(fmt::format("p-worker-{}", i), "Running", {}, 1);
  }
  CHECK(world.names("Pod").empty());
  CHECK(world.conditions() == "Created Running! Failed");
}

TEST_CASE("T11: the Service of a role without the named port") {
  World world(make_job("TFJob", "Worker"));
  CHECK(world.at("Service/p-worker-0").get("spec").get_array("ports").size() == 1);
  CHECK(world.at("Service/p-worker-0").get("spec").get_string("clusterIP") == "None");
  CHECK_FALSE(world.at("Service/p-worker-0").get("spec").find("publishNotReadyAddresses"));
}

TEST_CASE("T12, T13, T14: TF_CONFIG") {
  const auto config = [](std::string_view roles, const std::string& pod, std::string_view ns = "ns",
                         const std::string& domain = {}) {
    World world{std::string(ns)};
    world.settings.cluster_domain = domain;
    CHECK(world.apply(make_job("TFJob", roles)) == 201);
    world.settle();
    return world.env(pod, "TF_CONFIG");
  };
  CHECK(config("Worker", "p-worker-0") == "-");
  CHECK(config("Chief", "p-chief-0") == "-");
  CHECK(config("Worker*0 PS*1", "p-ps-0") == "-");
  CHECK(
      config("Worker PS", "p-worker-0") ==
      R"({"cluster":{"ps":["p-ps-0.ns.svc:2222"],"worker":["p-worker-0.ns.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"})");
  CHECK(
      config("Worker PS", "p-ps-0", "other", "tf.training.com") ==
      R"({"cluster":{"ps":["p-ps-0.other.svc.tf.training.com:2222"],"worker":["p-worker-0.other.svc.tf.training.com:2222"]},"task":{"type":"ps","index":0},"environment":"cloud"})");
  CHECK(
      config("Worker*2 Evaluator", "p-worker-1") ==
      R"({"cluster":{"evaluator":["p-evaluator-0.ns.svc:2222"],"worker":["p-worker-0.ns.svc:2222","p-worker-1.ns.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"})");
  CHECK(config("Chief Worker", "p-chief-0") != "-");
}

TEST_CASE("T16, T17: ExitCode") {
  World world(make_job("TFJob", "Worker PS", "roles: {Worker: {restartPolicy: ExitCode}}"));
  const Json uid = world.at("Pod/p-worker-0").get("metadata").get("uid");
  world.pod("p-worker-0", "Failed", 130);
  CHECK(world.has_event("Normal ExitedWithCode: Pod: ns.p-worker-0 exited with code 130"));
  CHECK(world.has_event("Normal SuccessfulDeletePod: Deleted pod: p-worker-0"));
  CHECK(world.at("Pod/p-worker-0").get("metadata").get("uid") != uid);
  CHECK(world.conditions() == "Created Restarting");
  CHECK(world.totals.restarted == 1);
  world.pod("p-worker-0", "Failed", 1);
  CHECK(world.conditions() == "Created Restarting Failed");
  CHECK(world.message("Failed") ==
        "TFJobFailed: job \"p\" is failing because \"Worker\" replica(s) failed.");
  CHECK(world.has_event("Warning TFJobFailed: job \"p\" is failing"));
  CHECK(world.has_event(
      "Warning TFJobRestarting: job p is restarting because Worker replica(s) failed."));
  CHECK(world.totals.failed);
}

TEST_CASE("T17: an exit code that is not retried ends a TFJob with a completionTime") {
  for (const auto& [kind, roles, has_time] :
       std::vector<std::tuple<const char*, const char*, bool>>{
           {"TFJob", "Worker PS", true},
           {"TFJob", "Chief Worker", true},
           {"PyTorchJob", "Master Worker", false},
           {"XGBoostJob", "Master Worker", false},
           {"PaddleJob", "Master Worker", false},
           {"JAXJob", "Worker*2", false}}) {
    World world(make_job(kind, roles, "roles: {Worker: {restartPolicy: ExitCode}}"));
    world.pod("p-worker-0", "Failed", 1);
    INFO(kind << " " << roles);
    CHECK(world.conditions() == "Created Failed");
    CHECK(
        world.message("Failed") ==
        fmt::format("{}Failed: job \"p\" is failing because \"Worker\" replica(s) failed.", kind));
    CHECK((world.at(fmt::format("{}/p", kind)).get("status").find("completionTime") != nullptr) ==
          has_time);
    CHECK(world.has_event(
              "Normal TFJobFailed: TFJob ns/p has failed because 1 Worker replica(s) failed.") ==
          has_time);
  }
}

TEST_CASE("of the events of a failure one is counted as the end of the job") {
  World world;
  REQUIRE(world.apply(make_job("TFJob", "Worker", "roles: {Worker: {restartPolicy: ExitCode}}")) ==
          201);
  world.settle();
  world.set_pod("p-worker-0", "Failed", 1);
  const V1JobPlan made = world.reconcile("TFJob/p");
  CHECK(std::count_if(made.events.begin(), made.events.end(), [](const auto& event) {
          return event.end != kube::PlannedEvent::End::kNone;
        }) == 1);
  CHECK(std::count_if(made.events.begin(), made.events.end(),
                      [](const auto& event) { return event.reason == "TFJobFailed"; }) == 2);
}

TEST_CASE("T19: worker 0 completes the job") {
  for (const auto& [phases, policy, done] : std::vector<std::tuple<const char*, const char*, bool>>{
           {"S:0 R R R", "''", true},
           {"R S:0 S:0 S:0", "''", false},
           {"S:0 R R R", "AllWorkers", false},
           {"S:0 S:0 S:0 S:0", "AllWorkers", true},
           {"R R R R", "''", false},
           {"S:1 R R R", "''", false}}) {
    World world(make_job("TFJob", "Worker*4", fmt::format("successPolicy: {}", policy)));
    play(world, "worker", phases);
    world.settle();
    INFO(phases << " " << policy);
    CHECK((world.conditions().find("Succeeded") != std::string::npos) == done);
  }
}

TEST_CASE("T20: dynamic workers know what they need") {
  World world(make_job("TFJob", "Worker*2 PS*2 Evaluator", "enableDynamicWorker: true"));
  CHECK(world.env("p-ps-1", "TF_CONFIG") ==
        R"({"cluster":{"worker":{},"ps":["p-ps-1.ns.svc:2222"]},"task":{"type":"ps","index":1}})");
  CHECK(
      world.env("p-worker-1", "TF_CONFIG") ==
      R"({"cluster":{"worker":{"1":"p-worker-1.ns.svc:2222"},"ps":["p-ps-0.ns.svc:2222","p-ps-1.ns.svc:2222"]},"task":{"type":"worker","index":1}})");
  CHECK(world.env("p-evaluator-0", "TF_CONFIG") ==
        R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"evaluator","index":0}})");
  World alone(make_job("TFJob", "Worker*2", "enableDynamicWorker: true"));
  CHECK(
      alone.env("p-worker-0", "TF_CONFIG") ==
      R"({"cluster":{"worker":{"0":"p-worker-0.ns.svc:2222"},"ps":null},"task":{"type":"worker","index":0}})");
  play(alone, "worker", "R F");
  alone.settle();
  CHECK(alone.conditions() == "Created Running");  // the other worker goes on
}

TEST_CASE("TS1 to TS19: what decides about a TFJob") {
  struct Row {
    const char* name;
    const char* roles;
    const char* chief;
    const char* worker;
    const char* ps;
    const char* more;
    const char* expected;
  };
  for (const Row& row : {
           Row{"TS1", "Chief", "S:0", "", "", "", "Created Succeeded"},
           Row{"TS2", "Chief", "R", "", "", "", "Created Running"},
           Row{"TS3", "Chief", "F", "", "", "", "Created Failed"},
           Row{"TS4", "Worker", "", "F", "", "", "Created Failed"},
           Row{"TS5", "Worker", "", "S:0", "", "", "Created Succeeded"},
           Row{"TS6", "Worker", "", "R", "", "", "Created Running"},
           Row{"TS7", "Worker*4", "", "R R S:0 S:0", "", "", "Created Running"},
           Row{"TS8", "Worker*4", "", "R R F F", "", "", "Created Running! Failed"},
           Row{"TS9", "Worker*4", "", "F F S:0 S:0", "", "", "Created Failed"},
           Row{"TS10", "Worker*4", "", "S:0 R R R", "", "", "Created Succeeded"},
           Row{"TS11", "Worker*4", "", "S:0 R R R", "", "successPolicy: AllWorkers",
               "Created Running"},
           Row{"TS12", "Worker*4", "", "S:0 S:0 S:0 S:0", "", "successPolicy: AllWorkers",
               "Created Succeeded"},
           Row{"TS13", "Worker*4", "", "S:0 S:0 S:0 F", "", "successPolicy: AllWorkers",
               "Created Failed"},
           Row{"TS14", "Chief Worker*4", "R", "F F F F", "", "", "Created Running! Failed"},
           Row{"TS15", "Chief Worker*4", "R", "S:0 S:0 S:0 S:0", "", "", "Created Running"},
           Row{"TS16", "Chief PS*2", "R", "", "R F", "", "Created Running! Failed"},
           Row{"TS17", "Chief Worker*2", "F", "S:0 S:0", "", "", "Created Failed"},
           Row{"TS18", "Chief Worker*2", "S:0", "F F", "", "", "Created Succeeded"},
           Row{"TS19", "Chief Worker", "F:130", "R", "",
               "roles: {Chief: {restartPolicy: ExitCode}}", "Created Restarting"},
           Row{"no decider", "PS", "", "", "S:0", "", "Created"},
       }) {
    World world(make_job("TFJob", row.roles, row.more));
    play(world, "chief", row.chief);
    play(world, "worker", row.worker);
    play(world, "ps", row.ps);
    INFO(row.name);
    // Both happen in one reconcile, like in upstream's tests.
    world.reconcile("TFJob/p");
    CHECK(world.conditions() == row.expected);
  }
}

TEST_CASE("messages of a TFJob") {
  World world(make_job("TFJob", "Worker PS"));
  world.pod("p-ps-0", "Failed", 1);
  CHECK(world.message("Failed") ==
        "TFJobFailed: TFJob ns/p has failed because 1 PS replica(s) failed.");
}
