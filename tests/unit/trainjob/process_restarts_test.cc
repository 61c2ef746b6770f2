// Restarts of processes in their pods are counted in the status, by what ranks report.
#include "runtimes/trainjob/process_restarts.hh"

#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Reasons = std::vector<std::string>;

void put_running_pods(World& world, std::int32_t attempt) {
  world.settle();
  for (std::int32_t index : {0, 1}) {
    PodSpec pod;
    pod.name = "j-node-0-" + std::to_string(index) + "-x";
    pod.index = index;
    pod.phase = "Running";
    pod.node_name = "worker";
    pod.is_ready = true;
    pod.attempt = attempt;
    world.put_pod(pod);
  }
  world.settle();
}

World restarting(const char* policy = "{maxRestarts: 1, processRestarts: 5}") {
  Json job = train_job();
  job["spec"].set("failurePolicy", yaml(policy));
  World world(std::move(job));
  put_running_pods(world, 0);
  return world;
}

HeartbeatFacts facts_of(std::int32_t attempt, std::int32_t restarts) {
  HeartbeatFacts facts;
  facts.restarts = attempt;
  facts.process_restarts = restarts;
  return facts;
}

// Returns the number in the status: nullopt while it is not known.
std::optional<std::int64_t> counted(World& world, const HeartbeatFacts& facts) {
  world.heartbeats = &facts;
  world.settle();
  world.heartbeats = nullptr;
  world.settle();  // without reports the number stays
  const Json* const number = world.status().find("processRestarts");
  return number ? std::optional(number->as_int()) : std::nullopt;
}

TEST_CASE("process restarts of all attempts are counted, also by a new process", "[restarts]") {
  World world = restarting();
  CHECK_FALSE(world.status().find("processRestarts"));
  CHECK(world.status().get_string("restartBudget") == "0/1");
  CHECK(counted(world, facts_of(0, 0)) == 0);
  CHECK(world.status().get_string("restartBudget") == "0/1");
  CHECK(counted(world, facts_of(0, 2)) == 2);
  CHECK(world.status().get_string("restartBudget") == "0/1 (2 in pods)");
  world.restart();
  CHECK(counted(world, facts_of(0, 2)) == 2);
  CHECK(counted(world, facts_of(0, 3)) == 3);

  world.set_jobset_status(yaml("{restarts: 1, restartsCountTowardsMax: 1}"));
  put_running_pods(world, 1);
  CHECK(counted(world, facts_of(0, 3)) == 3);  // the last word of the earlier pods
  CHECK(counted(world, facts_of(1, 0)) == 3);
  CHECK(counted(world, facts_of(1, 1)) == 4);
  CHECK(world.status().get_string("restartBudget") == "1/1 (4 in pods)");
  world.restart();
  CHECK(counted(world, facts_of(1, 1)) == 4);
  CHECK(counted(world, facts_of(1, 2)) == 5);
  // A JobSet that is made again counts its attempts again.
  CHECK(counted(world, facts_of(1, 0)) == 5);
  CHECK(counted(world, facts_of(1, 1)) == 6);
}

TEST_CASE("a new process of the controller counts what has happened without it", "[restarts]") {
  World world = restarting();
  CHECK(counted(world, facts_of(0, 1)) == 1);
  world.restart();
  CHECK(counted(world, facts_of(0, 3)) == 3);
}

TEST_CASE("each rise has an event", "[restarts]") {
  World world = restarting();
  const HeartbeatFacts none = facts_of(0, 0);
  world.heartbeats = &none;
  CHECK(world.settle().empty());
  const HeartbeatFacts one = facts_of(0, 1);
  world.heartbeats = &one;
  const TrainJobPlan plan = world.reconcile();
  REQUIRE(reasons_of(plan) == Reasons{"ProcessesRestarted"});
  CHECK(plan.events[0].message.find("1 such restart") != std::string::npos);
  CHECK(world.settle().empty());
  CHECK(world.phase() == "Running");
}

TEST_CASE("only jobs with processRestarts are counted", "[restarts]") {
  for (const char* policy : {"{maxRestarts: 1}", "{maxRestarts: 1, processRestarts: 0}"}) {
    World world = restarting(policy);
    CHECK(counted(world, facts_of(0, 2)) == std::nullopt);
  }
}

TEST_CASE("processes that come no further end the job", "[restarts]") {
  World world = restarting();
  HeartbeatFacts facts = facts_of(0, 2);
  facts.restarts_at_one_step = 2;
  CHECK(counted(world, facts) == 2);
  CHECK(world.phase() == "Running");
  facts = facts_of(0, 3);
  facts.restarts_at_one_step = 3;
  facts.last_step = 40;
  CHECK(counted(world, facts) == 3);
  CHECK(world.phase() == "Failed");
  CHECK(world.reason() == "ProcessesKeepFailing");
  CHECK(world.message().find("3 times in a row") != std::string::npos);
  CHECK(world.message().find("step 40") != std::string::npos);
  CHECK_FALSE(world.jobset);
}

}  // namespace
}  // namespace trainer::test
