// Values of labels of a JobSet's metrics, through its life.
#include "runtimes/jobset/measures.hh"

#include <algorithm>

#include "api/api.hh"
#include "tests/support/catch.hh"
#include "tests/unit/jobset/world.hh"

namespace trainer::jobset {
namespace {

using test::test_js;
using test::World;

JobSet now(const World& world) {
  auto read = read_jobset(world.jobset());
  REQUIRE(read);
  return std::move(*read);
}

std::string phase(const World& world) {
  return std::string(phase_of(now(world)));
}

constexpr const char* kNames[] = {"test-js-replicated-job-a-0", "test-js-replicated-job-b-0",
                                  "test-js-replicated-job-b-1", "test-js-replicated-job-b-2"};

void all_ready(World& world) {
  for (const char* const name : kNames) world.ready(name);
  world.settle();
}

TEST_CASE("the phase of a JobSet follows its Jobs to their end") {
  World world(test_js());
  CHECK(phase(world) == "Pending");
  world.settle();
  CHECK(phase(world) == "Pending");
  for (const char* const name : {kNames[0], kNames[1], kNames[2]}) world.ready(name);
  world.settle();
  CHECK(phase(world) == "Pending");
  world.ready(kNames[3]);
  world.settle();
  CHECK(phase(world) == "Running");
  world.complete(kNames[0]);
  world.settle();
  CHECK(phase(world) == "Running");
  for (const char* const name : kNames) world.complete(name);
  world.settle();
  CHECK(phase(world) == "Complete");
  CHECK(failure_reason(now(world).status).empty());
}

TEST_CASE("a JobSet that starts again is Restarting until all Jobs are ready") {
  World world(test_js("  failurePolicy: {maxRestarts: 1}\n"));
  world.settle();
  all_ready(world);
  world.fail(kNames[1]);
  world.settle();
  world.release_all();
  world.settle();
  CHECK(now(world).status.restarts == 1);
  CHECK(phase(world) == "Restarting");
  all_ready(world);
  CHECK(phase(world) == "Running");
  world.fail(kNames[1]);
  world.settle();
  CHECK(phase(world) == "Failed");
  CHECK(failure_reason(now(world).status) == "ReachedMaxRestarts");
}

TEST_CASE("a suspended JobSet is Suspended, and Queued where a queue holds it") {
  World world(test_js("  suspend: true\n"));
  world.settle();
  CHECK(phase(world) == "Suspended");
  JobSet queued = now(world);
  queued.metadata.labels["kueue.x-k8s.io/queue-name"] = "q";
  CHECK(phase_of(queued) == "Queued");
  world.set_suspend(false);
  world.settle();
  CHECK(phase(world) == "Pending");
}

TEST_CASE("Jobs that start later do not keep a JobSet from running") {
  World world(test_js("  startupPolicy: {startupPolicyOrder: InOrder}\n"));
  world.settle();
  CHECK(phase(world) == "Pending");
  world.ready(kNames[0]);
  // The next Jobs are not there yet.
  JobSet first = now(world);
  for (ReplicatedJobStatus& counts : first.status.replicatedJobsStatus)
    counts.ready = counts.name == "replicated-job-a" ? 1 : 0;
  CHECK(phase_of(first) == "Running");
  world.settle();
  world.activate(kNames[1]);
  world.settle();
  CHECK(phase(world) == "Pending");  // they are, and are not ready
}

TEST_CASE("each phase in which a JobSet waits has a reason, and the others have none") {
  CHECK(waiting_reason({}, "Pending") == "CreatingPods");
  CHECK(waiting_reason({}, "Restarting") == "NodesReplaced");
  CHECK(waiting_reason({}, "Queued") == "WaitingForQuota");
  CHECK(waiting_reason({}, "Suspended") == "Suspended");
  for (const char* phase : {"Running", "Complete", "Failed"})
    CHECK(waiting_reason({}, phase).empty());
}

TEST_CASE("a child that is refused is the reason of a JobSet that waits") {
  JobSetStatus status;
  status.conditions.push_back(
      {.type = "ReplicaFailure", .status = "True", .reason = "JobsRefused"});
  for (const char* phase : {"Pending", "Restarting"})
    CHECK(waiting_reason(status, phase) == "JobsRefused");
  for (const char* phase : {"Running", "Complete", "Failed"})
    CHECK(waiting_reason(status, phase).empty());
  status.conditions.front().reason = "AnotherWord";  // a reason of another controller
  CHECK(waiting_reason(status, "Pending") == "CreatingPods");
}

TEST_CASE("a reason that another controller has written counts as other") {
  JobSetStatus strange;
  strange.conditions.push_back({.type = "Failed", .status = "True", .reason = "Strange"});
  CHECK(failure_reason(strange) == "Other");
  CHECK(std::ranges::count(failure_reasons(), failure_reason(strange)) == 1);
  strange.conditions[0].status = "False";
  CHECK(failure_reason(strange).empty());
}

TEST_CASE("a later job with a Job in any state is waited for") {
  World world(test_js("  startupPolicy: {startupPolicyOrder: InOrder}\n"));
  world.settle();
  JobSet jobset = now(world);
  for (const auto counter :
       {&ReplicatedJobStatus::ready, &ReplicatedJobStatus::succeeded, &ReplicatedJobStatus::failed,
        &ReplicatedJobStatus::active, &ReplicatedJobStatus::suspended}) {
    for (ReplicatedJobStatus& counts : jobset.status.replicatedJobsStatus) {
      const std::string name = counts.name;
      counts = {};
      counts.name = name;
      if (name == "replicated-job-a") counts.ready = 1;
    }
    CHECK(phase_of(jobset) == "Running");
    for (ReplicatedJobStatus& counts : jobset.status.replicatedJobsStatus)
      if (counts.name == "replicated-job-b") counts.*counter = 1;
    CHECK(phase_of(jobset) == "Pending");
  }
}

}  // namespace
}  // namespace trainer::jobset
