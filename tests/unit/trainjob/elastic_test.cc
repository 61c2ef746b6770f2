// The number of nodes of an elastic job changes while it runs.
#include "runtimes/trainjob/elastic.hh"

#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;

World elastic(std::int32_t nodes) {
  Json runtime = torch_runtime();
  runtime["spec"]["mlPolicy"]["torch"].set("elasticPolicy", yaml("{minNodes: 2, maxNodes: 4}"));
  Json job = train_job();
  job["spec"]["trainer"].set("numNodes", nodes);
  World world(std::move(job), std::move(runtime));
  world.settle();
  return world;
}

void put_pods(World& world, std::int32_t running, std::int32_t pending = 0) {
  for (std::int32_t index = 0; index < running + pending; ++index) {
    PodSpec pod;
    pod.name = "j-node-0-" + std::to_string(index) + "-x";
    pod.index = index;
    if (index < running) {
      pod.phase = "Running";
      pod.node_name = "worker";
      pod.is_ready = true;
    }
    world.put_pod(pod);
  }
  world.settle();
}

std::int64_t parallelism_of(const World& world) {
  const Json& job = world.jobset->get("spec").get_array("replicatedJobs").at(0);
  const Json& spec = job.get_path({"template", "spec"});
  CHECK(spec.get_int("parallelism") == spec.get_int("completions"));
  return spec.get_int("parallelism");
}

void scale(World& world, std::int32_t nodes) {
  Json trainer = world.object.get_path({"spec", "trainer"});
  trainer.set("numNodes", nodes);
  world.set_spec("trainer", std::move(trainer));
  world.settle();
}

TEST_CASE("a running JobSet follows the number of nodes", "[elastic]") {
  World world = elastic(3);
  put_pods(world, 3);
  CHECK(world.status().get("elastic") ==
        yaml("{minNodes: 2, maxNodes: 4, selector: 'jobset.sigs.k8s.io/jobset-name=j,"
             "jobset.sigs.k8s.io/replicatedjob-name=node'}"));
  CHECK(world.status().get_path({"nodes", "summary"}) == Json("3/3"));
  scale(world, 4);
  CHECK(parallelism_of(world) == 4);
  CHECK(world.status().get_path({"nodes", "summary"}) == Json("3/4"));
  CHECK(world.phase() == "Running");
  scale(world, 2);
  CHECK(parallelism_of(world) == 2);
  CHECK(world.status().get_path({"nodes", "summary"}) == Json("2/2"));
  const int requests = world.requests;
  world.settle();
  CHECK(world.requests == requests);
}

TEST_CASE("a number of nodes outside the bounds changes nothing", "[elastic]") {
  World world = elastic(3);
  for (const std::int32_t nodes : {1, 5}) {
    scale(world, nodes);
    CHECK(parallelism_of(world) == 3);
  }
}

TEST_CASE("a suspended job is resumed with its new size", "[elastic]") {
  World world = elastic(3);
  world.set_spec("suspend", true);
  world.settle();
  scale(world, 4);
  CHECK(parallelism_of(world) == 4);
  world.set_spec("suspend", false);
  world.settle();
  CHECK(parallelism_of(world) == 4);
}

TEST_CASE("an elastic job runs with the least number of nodes", "[elastic]") {
  World world = elastic(4);
  put_pods(world, 1, 3);
  CHECK(world.phase() != "Running");
  put_pods(world, 2, 2);
  CHECK(world.phase() == "Running");
  CHECK(world.reason() != "NodesReady");
  CHECK(world.status().get_path({"nodes", "summary"}) == Json("2/4"));
  put_pods(world, 4);
  CHECK(world.reason() == "NodesReady");
}

TEST_CASE("a job whose volume cannot be mounted is scaled, too", "[elastic]") {
  World world = elastic(3);
  put_pods(world, 2, 1);
  world.waiting_event = "FailedMount: MountVolume.SetUp failed";
  scale(world, 2);
  CHECK(parallelism_of(world) == 2);
}

TEST_CASE("a job in a queue keeps its number of nodes", "[elastic]") {
  World world = elastic(3);
  world.object["metadata"].set("labels", yaml("{kueue.x-k8s.io/queue-name: team}"));
  world.settle();
  CHECK_FALSE(world.status().find("elastic"));
  scale(world, 4);
  CHECK(parallelism_of(world) == 3);
}

TEST_CASE("only jobs that may be scaled say so", "[elastic]") {
  World fixed;
  fixed.settle();
  CHECK_FALSE(fixed.status().find("elastic"));

  World world = elastic(3);
  world.is_jobset_controller_active = false;
  world.settle();
  CHECK_FALSE(world.status().find("elastic"));
  scale(world, 4);
  CHECK(parallelism_of(world) == 3);
  world.is_jobset_controller_active = true;
  world.settle();
  CHECK(parallelism_of(world) == 4);

  world.set_jobset_status(yaml("{conditions: [{type: Completed, status: 'True', reason: A}]}"));
  world.settle();
  CHECK(world.phase() == "Complete");
  CHECK_FALSE(world.status().find("elastic"));
}

}  // namespace
}  // namespace trainer::test
