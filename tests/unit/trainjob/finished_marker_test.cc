// A job that had finished does not run again if a backup of it is restored: a backup keeps
// metadata, and neither status nor uid.
#include "runtimes/lifecycle/finished_marker.hh"

#include "kube/model/json_text.hh"
#include "runtimes/trainjob/conditions.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;

// The JobSet of this job has ended, and the job is settled.
World ended(std::string_view condition, bool is_marked) {
  World world;
  world.marks_finished = is_marked;
  world.settle();
  world.set_jobset_status(yaml("{conditions: [{type: " + std::string(condition) +
                               ", status: 'True', reason: Because, message: m, "
                               "lastTransitionTime: '2027-01-15T08:30:00Z'}]}"));
  world.settle();
  return world;
}

// Returns what a tool for backups restores: annotations, without a status and the job's objects.
World restored(const World& before) {
  Json object = before.object;
  object.erase("status");
  object["metadata"].set("uid", "restored-uid").set("creationTimestamp", "2027-02-01T08:00:00Z");
  return World(std::move(object));
}

std::string marker_of(const World& world) {
  const Json* found = world.object.find_path({"metadata", "annotations", kFinishedMarkerKey});
  return found ? found->as_string() : std::string();
}

TEST_CASE("without the setting a finished job costs no write") {
  const World world = ended("Completed", false);
  CHECK(world.phase() == "Complete");
  CHECK(marker_of(world).empty());
}

TEST_CASE("a finished job is marked once, by one write, after its status") {
  World world = ended("Completed", false);
  world.marks_finished = true;
  const int requests = world.requests;
  world.settle();
  CHECK(world.requests == requests + 1);
  const auto marker = kube::parse_json(marker_of(world));
  REQUIRE(marker);
  CHECK(marker->get_string("name") == "j");
  world.restart();
  world.settle();
  CHECK(world.requests == requests + 1);
}

TEST_CASE("a job that has not finished is not marked") {
  World world;
  world.marks_finished = true;
  world.settle();
  CHECK(marker_of(world).empty());
}

TEST_CASE("a restored job that had finished gets its status back and nothing else") {
  const auto [condition, phase] =
      GENERATE(table<std::string, std::string>({{"Completed", "Complete"}, {"Failed", "Failed"}}));
  const World before = ended(condition, true);
  REQUIRE(before.phase() == phase);
  // This also holds if the setting is off by then.
  World world = restored(before);
  CHECK(world.settle() == std::vector<std::string>{"Restored"});
  CHECK(world.phase() == phase);
  CHECK(world.reason() == before.reason());
  CHECK(world.conditions() == before.conditions());
  CHECK(world.job().status.completionTime == before.job().status.completionTime);
  CHECK_FALSE(world.jobset);
  CHECK(world.others.empty());
  CHECK(world.requests == 1);
  CHECK(world.reads == 0);
}

TEST_CASE("a mark that says nothing of this job does not keep it from running") {
  World world = restored(ended("Completed", true));
  Json& annotations = world.object["metadata"]["annotations"];
  SECTION("a copy under another name") {
    Json marker = *kube::parse_json(marker_of(world));
    marker.set("name", "other");
    annotations.set(kFinishedMarkerKey, kube::print_json(marker));
  }
  SECTION("no JSON") {
    annotations.set(kFinishedMarkerKey, "yes");
  }
  SECTION("no end") {
    annotations.set(kFinishedMarkerKey, R"({"name":"j","status":{"phase":"Complete"}})");
  }
  SECTION("a status of another shape") {
    annotations.set(kFinishedMarkerKey, R"({"name":"j","status":{"conditions":7}})");
  }
  world.settle();
  CHECK(world.jobset);
}

TEST_CASE("a mark on a job that has a status already means nothing") {
  World running;
  running.settle();
  const World before = ended("Completed", true);
  running.object["metadata"]["annotations"].set(kFinishedMarkerKey, marker_of(before));
  running.settle();
  CHECK_FALSE(is_finished(running.job().status));
}

TEST_CASE("a mark fits into the annotations of an object") {
  kube::ObjectMeta meta;
  meta.name = "j";
  Json status = yaml("{conditions: [{type: Failed, status: 'True', reason: R}]}");
  status["conditions"].as_array()[0].set("message", std::string(32'768, 'x'));
  status.set("message", std::string(4'096, 'y'));
  const auto action = mark_finished(kTrainJobs, meta, status);
  REQUIRE(action);
  CHECK(kube::print_json(action->body).size() < 4'000);
}

}  // namespace
}  // namespace trainer::test
