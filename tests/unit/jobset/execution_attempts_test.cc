// The number of a run counts restarts and resumptions (JobSet, KEP-1282).
#include <string>

#include "tests/unit/jobset/world.hh"

using kube::Json;
using trainer::jobset::test::World;

namespace {

const std::string kAttempt = "jobset.sigs.k8s.io/execution-attempt";

// The pods of replicated job "a" have the annotation; those of "b" have none.
std::string counting(std::string_view more = {}) {
  const auto job = [](std::string_view name, std::string_view metadata) {
    return "  - name: " + std::string(name) + "\n    template: {spec: {template: {" +
           std::string(metadata) +
           "spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n";
  };
  return "metadata: {name: j}\nspec:\n" + std::string(more) +
         "  failurePolicy: {maxRestarts: 2}\n  replicatedJobs:\n" +
         job("a", "metadata: {annotations: {" + kAttempt + ": \"0\"}}, ") + job("b", "");
}

// Returns the attempt of the status, of a Job and of its pods: "1 1 1"; "-" for none.
std::string attempts(const World& world, const std::string& job = "j-a-0") {
  const auto text = [](const Json* value) {
    return !value ? "-" : value->is_string() ? value->as_string() : kube::print_json(*value);
  };
  std::string found = text(world.jobset().find_path({"status", "executionAttempts"}));
  if (!world.jobs().contains(job)) return found;
  const Json& made = world.job(job);
  return found + " " + text(made.find_path({"metadata", "annotations", kAttempt})) + " " +
         text(made.find_path({"spec", "template", "metadata", "annotations", kAttempt}));
}

void suspend(World& world) {
  world.set_suspend(true);
  world.settle();
}

void resume(World& world) {
  world.set_suspend(false);
  world.settle();
}

}  // namespace

TEST_CASE("resumptions and restarts of the whole JobSet raise the attempt") {
  World world(counting());
  world.settle();
  CHECK(attempts(world) == "0 0 0");
  CHECK(attempts(world, "j-b-0") == "0 - -");
  for (const char* job : {"j-a-0", "j-b-0"}) world.activate(job);
  suspend(world);
  CHECK(attempts(world) == "0 0 0");
  resume(world);
  CHECK(attempts(world) == "1 1 1");
  CHECK(world.suspended_jobs() == 0);
  world.fail("j-b-0");
  world.settle();
  world.release_all();
  world.settle();
  CHECK(world.restarts() == "1/1");
  CHECK(attempts(world) == "2 2 2");
  suspend(world);
  resume(world);
  CHECK(attempts(world) == "3 3 3");
  CHECK(world.restarts() == "1/1");
}

TEST_CASE("the first run of a JobSet that a queue holds back is attempt 0") {
  World world(counting("  suspend: true\n"));
  world.settle();
  CHECK(attempts(world) == "-");
  resume(world);
  CHECK(attempts(world) == "0 0 0");
  CHECK(world.condition("Suspended") == "False");
  suspend(world);
  CHECK(world.condition("Suspended") == "True");
  resume(world);
  CHECK(attempts(world) == "1 1 1");
}

TEST_CASE("no Job is resumed before the status has the number of its run") {
  World world(counting());
  world.settle();
  suspend(world);
  world.set_suspend(false);
  const auto first = world.context();
  CHECK(first.actions.empty());
  CHECK(attempts(world) == "1 0 0");
  CHECK(world.suspended_jobs() == 2);
  // A queue evicts it again before its Jobs are resumed: each run has a number of its own.
  suspend(world);
  resume(world);
  CHECK(attempts(world) == "2 2 2");
}

TEST_CASE("a run ends also if the JobSet is resumed before its status says that it is suspended") {
  World world(counting());
  world.settle();
  world.set_suspend(true);
  world.context();  // suspends the Jobs; the condition follows when they are
  CHECK(world.condition("Suspended").empty());
  CHECK(world.suspended_jobs() == 2);
  resume(world);
  CHECK(attempts(world) == "1 1 1");
  CHECK(world.suspended_jobs() == 0);
}

TEST_CASE("a JobSet that does not ask has no attempts") {
  World world(trainer::jobset::test::test_js());
  world.settle();
  suspend(world);
  resume(world);
  CHECK_FALSE(world.jobset().find_path({"status", "executionAttempts"}));
}

TEST_CASE("where the API server drops the field, restarts alone count, and nothing repeats") {
  World world(counting());
  const auto passes = [&world] {
    for (int i = 0; i < 8; ++i) {
      world.context();
      world.jobset()["status"].erase("executionAttempts");
      world.release_all();
    }
    const int writes = world.status_writes;
    CHECK_FALSE(world.context().status_patch.has_value());
    CHECK(world.status_writes == writes);
  };
  passes();
  world.set_suspend(true);
  passes();
  world.set_suspend(false);
  passes();
  CHECK(world.suspended_jobs() == 0);
  CHECK(attempts(world) == "- 0 0");
  world.fail("j-b-0");
  passes();
  CHECK(attempts(world) == "- 1 1");
}
