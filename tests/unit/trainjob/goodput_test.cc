// The time of a job is counted by its use: each second counts for one, whatever happens.
#include "runtimes/trainjob/goodput.hh"

#include <array>
#include <random>

#include "runtimes/trainjob/stall.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

using namespace trainer;
using namespace trainer::test;
using kube::Json;
using std::chrono::seconds;

namespace {

// Productive, queued, starting, recomputed, stalled.
using Times = std::array<std::int64_t, 5>;

Times times_of(const World& world) {
  const Json& goodput = world.status().get("goodput");
  return {goodput.get_int("productive"), goodput.get_int("queued"), goodput.get_int("starting"),
          goodput.get_int("recomputed"), goodput.get_int("stalled")};
}

std::string use_of(const World& world) {
  return std::string(world.status().get("goodput").get_string("current"));
}

// A job whose ranks report, in attempts of its JobSet.
struct ReportingJob {
  World world;
  HeartbeatFacts facts;

  ReportingJob() {
    world.settle();
    world.advance(seconds(100));
    run(0);
    world.heartbeats = &facts;
  }

  void run(std::int32_t attempt) {
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
  void restart(std::int32_t attempt) {
    world.set_jobset_status(Json::object({{"restarts", attempt}}));
    world.pods.clear();
    world.settle();
  }
  void reach(std::int64_t steps) {
    facts.stepped_at = world.now;
    facts.position.steps = steps;
    world.settle();
  }
  void begin_attempt(std::int32_t attempt, bool has_loaded) {
    facts.restarts = attempt;
    facts.stepped_at.reset();
    facts.previous = std::exchange(facts.position, stall::Position{0, -1, has_loaded});
    world.settle();
  }
  void complete() {
    world.set_jobset_status(Json::object(
        {{"conditions",
          Json::Array{Json::object({{"type", "Completed"},
                                    {"status", "True"},
                                    {"reason", "AllJobsCompleted"},
                                    {"message", "m"},
                                    {"lastTransitionTime", world.now.to_string()}})}}}));
    world.settle();
  }
};

}  // namespace

TEST_CASE("a job's time is counted by its use, and steps that are made twice apart", "[goodput]") {
  ReportingJob job;
  World& world = job.world;
  world.settle();
  CHECK(use_of(world) == "starting");
  CHECK(times_of(world)[1] == 100);
  world.advance(seconds(30));
  job.reach(1);
  CHECK(use_of(world) == "productive");
  CHECK(times_of(world)[2] == 30);

  world.advance(seconds(1000));
  job.facts.position.saved = 80;
  job.reach(100);
  const Times before = times_of(world);
  job.restart(1);
  CHECK(times_of(world)[0] == before[0] + 1000);
  CHECK(world.status().get("goodput").get_int("step") == 100);
  CHECK(world.status().get("goodput").get_int("checkpoint") == 80);

  world.advance(seconds(20));
  job.run(1);
  world.advance(seconds(5));
  SECTION("the next attempt loads the checkpoint") {
    job.begin_attempt(1, true);
    job.reach(1);
    CHECK(use_of(world) == "recomputed");
    world.advance(seconds(190));
    job.reach(19);
    CHECK(use_of(world) == "recomputed");
    // A report comes late: half of these steps are new.
    world.advance(seconds(210));
    job.reach(40);
    CHECK(use_of(world) == "productive");
    CHECK(times_of(world)[2] - before[2] == 25);
    CHECK(times_of(world)[3] == 200);
    world.advance(seconds(300));
    job.complete();
    CHECK(use_of(world).empty());
    CHECK(times_of(world)[0] == before[0] + 1500);
  }
  SECTION("the next attempt begins from nothing, also with a new controller") {
    job.begin_attempt(1, false);
    world.restart();
    job.reach(1);
    world.advance(seconds(400));
    job.reach(99);
    CHECK(use_of(world) == "recomputed");
    world.advance(seconds(1));
    job.reach(100);
    CHECK(use_of(world) == "productive");
    CHECK(times_of(world)[3] == 401);
  }
}

TEST_CASE("a stall counts from the last step on, and a long use is written each hour",
          "[goodput]") {
  ReportingJob job;
  World& world = job.world;
  job.reach(1);
  const Times before = times_of(world);
  world.advance(seconds(600));
  StallStatus stall;
  stall.since = world.now + seconds(-400);
  stall.reason = "Silent";
  stall.message = "m";
  job.facts.stall = stall;
  world.settle();
  CHECK(use_of(world) == "stalled");
  CHECK(times_of(world)[0] == before[0] + 200);
  world.advance(seconds(50));
  job.facts.stall.reset();
  world.settle();
  CHECK(times_of(world)[4] == 450);

  const int requests = world.requests;
  world.advance(seconds(3500));
  world.settle();
  CHECK(world.requests == requests);
  world.advance(seconds(100));
  world.settle();
  CHECK(world.requests == requests + 1);
  CHECK(times_of(world)[0] == before[0] + 200 + 3000);
}

TEST_CASE("processes that are started again in their pods make steps twice, too", "[goodput]") {
  ReportingJob job;
  TrainJobStatus before;
  before.phase = "Running";
  before.startTime = job.world.now;
  TrainJob trainjob = job.world.job();
  const Json object;
  const kube::NamedObjects objects;
  TrainJobObserved observed{trainjob, object, objects};
  observed.now = job.world.now;
  HeartbeatFacts facts;
  facts.stepped_at = observed.now;
  facts.position.steps = 50;
  observed.heartbeats = &facts;
  const auto settle = [&] {
    TrainJobStatus after = before;
    if (facts.previous.steps > 0 && !before.processRestarts) after.processRestarts = 1;
    settle_goodput(observed, &facts, before, after);
    before = after;
    return after.goodput->current;
  };
  CHECK(settle() == "productive");
  facts.previous = facts.position;
  facts.position.steps = 10;
  CHECK(settle() == "recomputed");
  facts.position.steps = 50;
  CHECK(settle() == "productive");
  // Another number of nodes has no count in the status.
  observed.process_restarts = ProcessRestartCount();
  facts.resizes = 1;
  facts.previous = facts.position;
  facts.position.steps = 20;
  CHECK(settle() == "recomputed");
  observed.process_restarts->resizes = 1;
  facts.position.steps = 51;
  CHECK(settle() == "productive");
}

TEST_CASE("each second of a job counts for one use, whatever happens", "[goodput]") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto draw = [&random](int below) {
      return static_cast<int>(random() % static_cast<unsigned>(below));
    };
    ReportingJob job;
    World& world = job.world;
    std::int32_t attempt = 0;
    const kube::Time created = *world.job().metadata.creation_timestamp;
    for (int event = 0; event < 30; ++event) {
      world.advance(seconds(draw(3000)));
      switch (draw(7)) {
        case 0:
          job.restart(++attempt);
          break;
        case 1:
          job.run(attempt);
          break;
        case 2:
          job.begin_attempt(attempt, draw(2) == 0);
          break;
        case 3:
          job.facts.stall.emplace();
          job.facts.stall->since = world.now + seconds(-draw(2000));
          world.settle();
          break;
        case 4:
          job.facts.stall.reset();
          world.settle();
          break;
        case 5:
          world.restart();
          world.heartbeats = draw(2) == 0 ? nullptr : &job.facts;
          world.settle();
          break;
        default:
          job.facts.position.saved = job.facts.position.steps;
          job.reach(job.facts.position.steps + draw(100));
      }
      const Json& goodput = world.status().get("goodput");
      if (goodput.is_null()) continue;
      std::int64_t sum = 0;
      for (const std::int64_t time : times_of(world)) {
        CHECK(time >= 0);
        sum += time;
      }
      const auto since = kube::Time::parse(goodput.get_string("since"));
      REQUIRE(since);
      CHECK(seconds(sum) == *since - created);
      CHECK(*since <= world.now);
    }
  }
}

TEST_CASE("steps that ranks make up do not overflow", "[goodput]") {
  ReportingJob job;
  for (std::int32_t attempt = 1; attempt < 12; ++attempt) {
    job.facts.position = {std::int64_t{1} << 60, std::int64_t{1} << 60, true};
    job.facts.stepped_at = job.world.now;
    job.world.settle();
    job.world.advance(seconds(10));
    job.restart(attempt);
    job.run(attempt);
    job.facts.restarts = attempt;
  }
  const Json& goodput = job.world.status().get("goodput");
  CHECK(goodput.get_int("step") == std::int64_t{1} << 40);
  CHECK(goodput.get_int("checkpoint") == std::int64_t{1} << 40);
}

TEST_CASE("the goodput has a text", "[goodput]") {
  GoodputStatus goodput;
  goodput.productive = 3 * 3600;
  goodput.queued = 59;
  goodput.recomputed = 3600 + 120;
  CHECK(describe(goodput) == "goodput 74 %: 3h productive, 59s queued, 1h2m recomputed");
  goodput = GoodputStatus();
  goodput.current = "starting";
  goodput.since = kube::Time::from_seconds(1'800'000'000);
  CHECK(describe(goodput) == "starting since 2027-01-15T08:00:00Z");
}
