// The verdict on a job's ranks is in its status while the job makes no step.
#include "runtimes/trainjob/stall.hh"

#include <algorithm>

#include "runtimes/trainjob/stragglers.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;
using stall::Rule;
using namespace std::chrono_literals;
using Reasons = std::vector<std::string>;

stall::Verdict stalled(Rule rule, std::vector<stall::Suspect> suspects) {
  stall::Verdict verdict;
  verdict.phase = stall::Phase::kStalled;
  verdict.rule = rule;
  verdict.suspect_count = static_cast<std::int32_t>(suspects.size());
  verdict.suspects = std::move(suspects);
  verdict.groups = {{"train.py:88 step", 3, {0, 1, 3}}, {"data.py:7 fetch", 1, {2}}};
  verdict.group_count = 2;
  verdict.world = 4;
  return verdict;
}

stall::Suspect suspect(std::int32_t rank, Rule rule, std::string line, std::string where = "") {
  stall::Suspect suspect;
  suspect.rank = rank;
  suspect.pod = "j-node-0-1-x";
  suspect.node = "worker-1";
  suspect.rule = rule;
  suspect.line = std::move(line);
  suspect.where = std::move(where);
  return suspect;
}

// All pods of this attempt run.
void put_pods(World& world, std::int32_t attempt) {
  world.settle();
  for (std::int32_t index : {0, 1}) {
    PodSpec pod;
    pod.name = "j-node-0-" + std::to_string(index) + "-x";
    pod.index = index;
    pod.phase = "Running";
    pod.node_name = "worker-" + std::to_string(index);
    pod.is_ready = true;
    pod.attempt = attempt;
    world.put_pod(pod);
  }
  world.settle();
}

World running() {
  World world;
  put_pods(world, 0);
  return world;
}

HeartbeatFacts facts_at(kube::Time since) {
  HeartbeatFacts facts;
  facts.stall = stall_of(
      stalled(Rule::kNotWaiting, {suspect(2, Rule::kNotWaiting, "data.py:7 fetch")}), since);
  return facts;
}

TEST_CASE("a verdict becomes a status for people", "[stall]") {
  const StallStatus status =
      stall_of(stalled(Rule::kNotWaiting,
                       {suspect(2, Rule::kNotWaiting, "data.py:7 fetch", "worker process 71")}),
               kube::Time::parse("2027-01-15T08:00:00.7Z"));
  CHECK(status.since == kube::Time::parse("2027-01-15T08:00:00Z"));
  CHECK(status.reason == "NotWaiting");
  CHECK(status.message ==
        "rank 2 (pod j-node-0-1-x, node worker-1) does not wait while the others do, at data.py:7 "
        "fetch (worker process 71)");
  REQUIRE(status.groups.size() == 2);
  CHECK(status.groups[0].ranks == "0-1, 3");
  CHECK(status.groups[0].count == 3);
  CHECK(stall_of(stalled(Rule::kStopped, {suspect(1, Rule::kStopped, "a.py:1 f", "last seen")}), {})
            .message ==
        "rank 1 (pod j-node-0-1-x, node worker-1) is stopped, by a signal or a debugger; last seen "
        "at a.py:1 f");
  CHECK(stall_of(stalled(Rule::kSamePlace, {}), {}).message.find("network") != std::string::npos);
  CHECK(stall_of(stalled(Rule::kUndecided, {}), {}).message.find("do not say") !=
        std::string::npos);
}

TEST_CASE("the summary says how long, rounded down, and changes when it says", "[stall]") {
  const kube::Time since = *kube::Time::parse("2027-01-15T08:00:00Z");
  const StallStatus status = *facts_at(since).stall;
  struct Row {
    std::chrono::seconds after;
    const char* text;
    std::chrono::seconds lasts;
  };
  const Row rows[] = {
      {-5s, "stalled (rank 2)", 60s},
      {59s, "stalled (rank 2)", 1s},
      {312s, "stalled 5m (rank 2)", 48s},
      {14min, "stalled 10m (rank 2)", 1min},
      {59min, "stalled 55m (rank 2)", 1min},
      {119min, "stalled 1h (rank 2)", 1min},
      {23h + 1s, "stalled 23h (rank 2)", 3599s},
      {49h, "stalled 2d (rank 2)", 23h},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(summary_of(status, since + row.after) == row.text);
    CHECK(summary_lasts(status, since + row.after) == row.lasts);
  }
}

TEST_CASE("a job that stalls says so until it makes steps", "[stall]") {
  World world = running();
  const HeartbeatFacts stalls = facts_at(world.now);
  world.advance(300s);
  world.heartbeats = &stalls;
  TrainJobPlan plan = world.reconcile();
  CHECK(reasons_of(plan) == Reasons{"Stalled"});
  CHECK(plan.requeue_after == 60s);
  CHECK(world.phase() == "Running");
  CHECK(world.status().get("stall").get_string("summary") == "stalled 5m (rank 2)");
  CHECK(world.settle().empty());
  CHECK(world.status().get("conditions").empty());

  // The time goes on, and nothing else.
  world.advance(60s);
  CHECK(reasons_of(world.reconcile()).empty());
  CHECK(world.status().get("stall").get_string("summary") == "stalled 6m (rank 2)");

  // A new process knows nothing yet.
  world.restart();
  world.heartbeats = nullptr;
  CHECK(world.settle().empty());
  CHECK(world.status().find("stall"));

  const HeartbeatFacts runs;
  world.heartbeats = &runs;
  CHECK(reasons_of(world.reconcile()) == Reasons{"Resumed"});
  CHECK_FALSE(world.status().find("stall"));
  CHECK(world.settle().empty());
}

TEST_CASE("a suspended job does not stall, and a failed one keeps who did", "[stall]") {
  World world = running();
  const HeartbeatFacts stalls = facts_at(world.now);
  world.heartbeats = &stalls;
  world.settle();
  REQUIRE(world.status().find("stall"));
  World suspended = world;
  suspended.set_spec("suspend", true);
  CHECK(suspended.settle() == Reasons{"Suspended"});
  CHECK_FALSE(suspended.status().find("stall"));

  world.set_jobset_status(
      yaml("{conditions: [{type: Failed, status: 'True', reason: FailedJobs, message: m, "
           "lastTransitionTime: '2027-01-15T08:10:00Z'}]}"));
  world.settle();
  CHECK(world.phase() == "Failed");
  CHECK(world.status().get("stall").get_string("reason") == "NotWaiting");
}

// A job of this policy of which all pods run.
World running_with(const std::string& policy) {
  Json job = train_job();
  job["metadata"].set("annotations", Json::object({{"trainer.kubeflow.org/detect-hangs", "true"},
                                                   {"trainer.kubeflow.org/hang-policy", policy}}));
  World world(std::move(job));
  world.options.is_progress_enabled = true;
  put_pods(world, 0);
  return world;
}

TEST_CASE("policy Restart ends each attempt that hangs, until it hangs thrice at one step",
          "[stall]") {
  World world = running_with("Restart");
  HeartbeatFacts stalls = facts_at(world.now);
  stalls.position.steps = 40;
  world.heartbeats = &stalls;
  CHECK(reasons_of(world.reconcile()) == Reasons{"HangRestart", "Stalled"});
  CHECK(world.ended_jobs == Reasons{"j-node-0"});
  CHECK(world.status().get("hangs") ==
        yaml("{restarts: 1, jobUid: j-node-0-uid-0, step: 40, repeats: 1}"));
  CHECK(world.settle().empty());
  CHECK(world.ended_jobs.size() == 1);

  SECTION("three times at one step") {
    for (std::int32_t attempt : {1, 2}) {
      world.set_jobset_status(Json::object({{"restarts", attempt}}));
      world.settle();
      CHECK_FALSE(world.status().find("stall"));
      put_pods(world, attempt);
      // The last word of the earlier pods.
      CHECK_FALSE(world.status().find("stall"));
      stalls.restarts = attempt;
      world.settle();
    }
    CHECK(world.ended_jobs.size() == 2);
    CHECK(world.phase() == "Failed");
    CHECK(world.reason() == "Stalled");
    CHECK(world.message().find("3 times in a row at step 40: rank 2") != std::string::npos);
    CHECK_FALSE(world.jobset);
  }
  SECTION("at other steps") {
    for (std::int32_t attempt : {1, 2, 3, 4}) {
      world.set_jobset_status(Json::object({{"restarts", attempt}}));
      put_pods(world, attempt);
      stalls.restarts = attempt;
      stalls.position.steps = 40 + attempt / 2;
      world.settle();
    }
    CHECK(world.ended_jobs.size() == 5);
    CHECK(world.phase() == "Running");
    CHECK(world.status().get("hangs") ==
          yaml("{restarts: 5, jobUid: j-node-0-uid-4, step: 42, repeats: 1}"));
  }
}

TEST_CASE("a hang without a suspect ends a Job, too", "[stall]") {
  World world = running_with("Restart");
  HeartbeatFacts stalls;
  stalls.stall = stall_of(stalled(Rule::kUndecided, {}), world.now);
  world.heartbeats = &stalls;
  world.settle();
  CHECK(world.ended_jobs == Reasons{"j-node-0"});
}

TEST_CASE("policy Fail ends the job, and Warn does nothing", "[stall]") {
  World world = running_with("Fail");
  const HeartbeatFacts stalls = facts_at(world.now);
  world.heartbeats = &stalls;
  CHECK(world.settle() == Reasons{"Failed"});
  CHECK(world.reason() == "Stalled");
  CHECK(world.message().find("the job hangs: rank 2") == 0);
  CHECK(world.status().get("stall").get_string("reason") == "NotWaiting");
  CHECK_FALSE(world.jobset);

  World warned = running_with("Warn");
  warned.heartbeats = &stalls;
  CHECK(warned.settle() == Reasons{"Stalled"});
  CHECK(warned.ended_jobs.empty());
  CHECK_FALSE(warned.status().find("hangs"));
}

StragglerStatus slow(std::int32_t rank, std::string pod, std::string times) {
  StragglerStatus straggler;
  straggler.rank = rank;
  straggler.pod = std::move(pod);
  straggler.node = "worker-1";
  straggler.times = std::move(times);
  return straggler;
}

TEST_CASE("slow ranks are named in the status, with one event and one write", "[stall]") {
  CHECK(stragglers_of({{5, "p", "n", 1.84}, {7, "p", "n", 999}}).back().times == "999.0");
  World world = running();
  HeartbeatFacts facts;
  world.heartbeats = &facts;
  CHECK(world.settle().empty());
  facts.stragglers.emplace();
  CHECK(world.settle().empty());
  CHECK_FALSE(world.status().find("stragglers"));

  facts.stragglers = {slow(2, "j-node-0-1-x", "1.8")};
  TrainJobPlan plan = world.reconcile();
  REQUIRE(reasons_of(plan) == Reasons{"Straggler"});
  CHECK(plan.events.front().type == "Normal");
  CHECK(plan.events.front().message ==
        "rank 2 (pod j-node-0-1-x, node worker-1) is slow: its own work takes 1.8 times the "
        "median; the others wait for it at each step");
  CHECK(plan.is_status_minor());
  CHECK(world.phase() == "Running");
  CHECK(world.reason() == "NodesReady");
  CHECK(world.status().get("conditions").empty());
  CHECK(world.status().get_array("stragglers").size() == 1);
  CHECK(world.settle().empty());

  // Another figure is no news, of the same process or of a new leader.
  const int requests = world.requests;
  facts.stragglers = {slow(2, "j-node-0-1-x", "2.6")};
  CHECK(world.settle().empty());
  facts.stragglers.reset();
  CHECK(world.settle().empty());
  world.restart();
  world.heartbeats = nullptr;
  CHECK(world.settle().empty());
  CHECK(world.requests == requests);

  // Those that are known already are not in the event of others.
  world.heartbeats = &facts;
  facts.stragglers.emplace();
  for (std::int32_t rank = 1; rank < 8; ++rank)
    facts.stragglers->push_back(slow(rank, "j-node-0-1-x", "3.0"));
  plan = world.reconcile();
  REQUIRE(reasons_of(plan) == Reasons{"Straggler"});
  CHECK(plan.events.front().message.starts_with("rank 1 ("));
  CHECK(plan.events.front().message.find("rank 2 ") == std::string::npos);
  CHECK(plan.events.front().message.ends_with("; and 3 more"));
  CHECK(world.status().get_array("stragglers")[1].get_string("times") == "1.8");

  facts.stragglers.emplace();
  CHECK(reasons_of(world.reconcile()).empty());
  CHECK_FALSE(world.status().find("stragglers"));
}

TEST_CASE("a job that is suspended, restarts, or has ended names no slow ranks", "[stall]") {
  World world = running();
  HeartbeatFacts facts;
  facts.stragglers = {slow(2, "j-node-0-1-x", "1.8")};
  world.heartbeats = &facts;
  world.settle();
  REQUIRE(world.status().find("stragglers"));
  const auto now_is = [&world](const char* text) {
    world.set_jobset_status(yaml(text));
    world.settle();
  };
  SECTION("it is suspended") {
    world.set_spec("suspend", true);
    world.settle();
  }
  SECTION("it restarts") {
    world.heartbeats = nullptr;
    now_is("{restarts: 1}");
  }
  SECTION("it is complete") {
    now_is(
        "{conditions: [{type: Completed, status: 'True', reason: AllJobsCompleted, message: m, "
        "lastTransitionTime: '2027-01-15T08:10:00Z'}]}");
  }
  CHECK_FALSE(world.status().find("stragglers"));
}

TEST_CASE("that a job makes steps again is no warning, and that it stalls is one", "[stall]") {
  World world = running();
  const HeartbeatFacts stalls = facts_at(world.now);
  world.heartbeats = &stalls;
  const TrainJobPlan stalled = world.reconcile();
  REQUIRE(reasons_of(stalled) == Reasons{"Stalled"});
  CHECK(stalled.events.front().type == "Warning");
  const HeartbeatFacts runs;
  world.heartbeats = &runs;
  const TrainJobPlan resumed = world.reconcile();
  REQUIRE(reasons_of(resumed) == Reasons{"Resumed"});
  CHECK(resumed.events.front().type == "Normal");
}

TEST_CASE("each slow rank has a part of its own in the event", "[stall]") {
  World world = running();
  HeartbeatFacts facts;
  world.heartbeats = &facts;
  world.settle();
  facts.stragglers = {slow(2, "j-node-0-1-x", "1.8"), slow(3, "j-node-0-1-x", "2.1")};
  const TrainJobPlan plan = world.reconcile();
  REQUIRE(reasons_of(plan) == Reasons{"Straggler"});
  CHECK(plan.events.front().message.find("at each step; rank 3 (pod j-node-0-1-x") !=
        std::string::npos);
}

}  // namespace
}  // namespace trainer::test
