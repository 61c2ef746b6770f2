// What the JobSet of a job is refused for, and what is said of a job without one.
#include <algorithm>

#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;

Json with_jobset_spec(std::string_view member, std::string_view value) {
  Json runtime = torch_runtime();
  runtime["spec"]["template"]["spec"].set(member, yaml(value));
  return runtime;
}

// A patch as a scheduler or a user writes it, with an affinity for nodes of one zone.
Json affinity_patch(std::string_view zone) {
  return yaml(R"([{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [
    {name: node, template: {spec: {template: {spec: {affinity: {nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
        {key: zone, operator: In, values: [)" +
              std::string(zone) + R"(]}]}]}}}}}}}}]}}}}])");
}

const Json* affinity_in(const World& world) {
  return world.jobset->find("spec")->get_array("replicatedJobs")[0].find_path(
      {"template", "spec", "template", "spec", "affinity"});
}

// Its pods have run, and now it waits for a client to resume it.
World suspended_after_a_run() {
  World world;
  world.settle();
  world.set_spec("suspend", true);
  world.settle();
  return world;
}

}  // namespace

TEST_CASE("a JobSet that its own webhook would refuse is not made") {
  World world(train_job(),
              with_jobset_spec("successPolicy", "{operator: All, targetReplicatedJobs: [nodes]}"));
  world.settle();
  CHECK_FALSE(world.jobset);
  CHECK(world.reason() == "ChildRefused");
  CAPTURE(world.message());
  CHECK(world.message().find("invalid replicatedJob name 'nodes' does not appear") !=
        std::string::npos);
}

TEST_CASE("a rule of a closed gate is refused, of an open one it is not") {
  const bool is_open = GENERATE(false, true);
  World world(train_job(),
              with_jobset_spec("failurePolicy",
                               "{maxRestarts: 1, rules: [{name: again, action: RestartJob}]}"));
  world.gates.restart_job = is_open;
  world.settle();
  CHECK(world.jobset.has_value() == is_open);
  CHECK((world.reason() == "ChildRefused") == !is_open);
}

TEST_CASE("another JobSet controller checks JobSets by itself") {
  World world(train_job(),
              with_jobset_spec("successPolicy", "{operator: All, targetReplicatedJobs: [nodes]}"));
  world.is_jobset_controller_active = false;
  world.settle();
  CHECK(world.jobset);
}

TEST_CASE("the affinity of a job that never ran changes, of one that ran it cannot") {
  World world = suspended_after_a_run();
  world.have_jobs_started = GENERATE(false, true);
  world.set_spec("runtimePatches", affinity_patch("a"));
  world.settle();
  if (!world.have_jobs_started) {
    REQUIRE(affinity_in(world));
    CHECK(world.reason() != "ChildRefused");
    return;
  }
  CHECK_FALSE(affinity_in(world));
  CHECK(world.reason() == "ChildRefused");
  CHECK(world.message().find("the affinity of job node cannot change") != std::string::npos);

  world.set_spec("runtimePatches", yaml("[]"));
  world.set_spec("suspend", false);
  world.settle();
  CHECK(world.reason() != "ChildRefused");
  CHECK_FALSE(world.jobset->find_path({"spec", "suspend"})->as_bool());
}

TEST_CASE("more replicated jobs than the status has a place for: active ones are shown") {
  World world;
  world.settle();
  kube::Json jobs = kube::Json::array();
  for (int i = 0; i < 150; ++i) {
    jobs.push_back(kube::Json::object({{"name", "job-" + std::to_string(i)},
                                       {"active", i >= 140 ? 1 : 0},
                                       {"ready", 0},
                                       {"succeeded", 0},
                                       {"failed", 0},
                                       {"suspended", 0}}));
  }
  world.set_jobset_status(kube::Json::object({{"restarts", 1}, {"replicatedJobsStatus", jobs}}));
  const auto events = world.settle();
  const auto& shown = world.status().get_array("jobsStatus");
  REQUIRE(shown.size() == 100);
  CHECK(shown[0].get_string("name") == "job-140");
  CHECK(shown[9].get_int("active") == 1);
  CHECK(shown[10].get_string("name") == "job-0");
  CHECK(std::count(events.begin(), events.end(), "StatusTruncated") == 1);
}

TEST_CASE("a job whose JobSet is gone has no active pods") {
  World world;
  world.settle();
  world.set_jobset_status(yaml(R"({restarts: 0, conditions: [], replicatedJobsStatus: [
    {name: node, active: 1, ready: 1, succeeded: 1, failed: 0, suspended: 0}]})"));
  world.settle();
  const auto counted = [&world](std::string_view name) {
    return world.status().get_array("jobsStatus")[0].get_int(name);
  };
  REQUIRE(counted("active") == 1);

  world.jobset.reset();
  world.is_runtime_deleted = true;
  world.others.clear();  // without its snapshot it cannot be made again
  world.restart();
  world.settle();
  CHECK_FALSE(world.jobset);
  CHECK(counted("active") == 0);
  CHECK(counted("ready") == 0);
  CHECK(counted("succeeded") == 1);  // Kueue has given that quota back already
}

}  // namespace trainer::test
