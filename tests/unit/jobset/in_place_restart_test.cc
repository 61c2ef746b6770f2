// In-place restarts: U16.
#include <optional>

#include "tests/unit/jobset/world.hh"

using namespace trainer::jobset;
using namespace trainer;
using namespace trainer::jobset::test;
using kube::Json;

namespace {

// Four pods, one restart allowed.
constexpr const char* kPolicy =
    "  failurePolicy: {maxRestarts: 1, restartStrategy: InPlaceRestart}";

World with_pods(const std::vector<const char*>& attempts, std::int32_t restart_count = 0) {
  Gates gates;
  gates.in_place_restart = true;
  World world(test_js(kPolicy), gates);
  for (const char* attempt : attempts) {
    PodView pod;
    pod.name = "p" + std::to_string(world.pods.size());
    pod.phase = "Running";
    pod.restart_count = restart_count;
    if (*attempt) pod.in_place_attempt = attempt;
    world.pods.push_back(pod);
  }
  return world;
}

std::string attempt(const World& world, const char* name) {
  const Json* value = world.jobset().find_path({"status", name});
  return value ? std::to_string(value->as_int()) : std::string();
}

}  // namespace

TEST_CASE("U16: attempts are brought together") {
  struct Row {
    const char* about;
    std::vector<const char*> attempts;
    std::int32_t restart_count;
    const char* current;
    const char* previous;
    bool has_failed;
    const char* warned;  // the warning about an attempt that is no number
  };
  const Row rows[] = {
      {"all at the start", {"0", "0", "0", "0"}, 0, "0", "", false, ""},
      {"all restarted", {"1", "1", "1", "1"}, 0, "1", "", false, ""},
      {"none has written", {"", "", "", ""}, 0, "", "", false, ""},
      {"some at the start", {"0", "", "", "0"}, 0, "", "", false, ""},
      {"one ahead", {"0", "1", "0", "0"}, 0, "", "0", false, ""},
      {"one ahead, others unknown", {"", "1", "", ""}, 0, "", "0", false, ""},
      {"an attempt too many", {"2", "1", "1", "1"}, 0, "", "", true, ""},
      {"containers restarted too often", {"0", "0", "0", "0"}, 2, "", "", true, ""},
      {"containers restarted once", {"0", "0", "0", "0"}, 1, "0", "", false, ""},
      {"no number", {"x", "0", "0", "0"}, 0, "", "", false, "x"},
      {"a negative number", {"-1", "0", "0", "0"}, 0, "", "", false, "-1"},
  };
  for (const Row& row : rows) {
    INFO(row.about);
    World world = with_pods(row.attempts, row.restart_count);
    world.settle();
    CHECK(attempt(world, "currentInPlaceRestartAttempt") == row.current);
    CHECK(attempt(world, "previousInPlaceRestartAttempt") == row.previous);
    CHECK((world.terminal_state() == "Failed") == row.has_failed);
    if (row.has_failed) {
      CHECK(world.events[0].message == "jobset failed due to reaching max number of restarts");
    } else if (*row.warned) {
      REQUIRE_FALSE(world.events.empty());
      CHECK(texts(world.events)[0] ==
            "Warning MalformedPodAnnotation: in-place restarts are paused: annotation "
            "jobset.sigs.k8s.io/in-place-restart-attempt of pod p0 is \"" +
                std::string(row.warned) + "\", which is not a number; delete the pod");
    } else {
      CHECK(texts(world.events).empty());
    }
  }
}

TEST_CASE("U16: restarts that did not count are subtracted, failed pods skipped") {
  World world = with_pods({"2", "1", "1", "1"});
  world.edit(Json::object({{"status", Json::object({{"restarts", 1}})}}));
  world.settle();
  CHECK(attempt(world, "previousInPlaceRestartAttempt") == "1");
  CHECK(world.terminal_state().empty());

  World with_failed = with_pods({"7", "1", "1", "1", "1"});
  with_failed.pods[0].phase = "Failed";
  with_failed.settle();
  CHECK(attempt(with_failed, "currentInPlaceRestartAttempt") == "1");
}

TEST_CASE("the previous attempt never goes back") {
  World world = with_pods({"1", "0", "0", "0"});
  world.edit(Json::object({{"status", Json::object({{"previousInPlaceRestartAttempt", 5}})}}));
  world.settle();
  CHECK(attempt(world, "previousInPlaceRestartAttempt") == "5");
}

TEST_CASE("a container that restarted too often counts, independent of the annotations") {
  World world = with_pods({"1", "one", "1", "1"}, 2);
  world.settle();
  CHECK(world.terminal_state() == "Failed");
}

TEST_CASE("behind a closed gate attempts are not looked at") {
  World world = with_pods({"1", "1", "1", "1"});
  world.gates.in_place_restart = false;
  world.settle();
  CHECK(attempt(world, "currentInPlaceRestartAttempt").empty());
}

TEST_CASE("templates without equal sizes are named") {
  World world = with_pods({"1", "0", "0", "0"});
  world.jobset()["spec"]["replicatedJobs"].as_array()[1]["template"]["spec"]["completions"] = 2;
  world.settle();
  CHECK(texts(world.events) ==
        std::vector<std::string>{
            "Warning InvalidInPlaceRestart: in-place restarts are paused: replicated job "
            "replicated-job-b must set completions and parallelism to the same number"});
}
