// PodGroups of MPIJobs of v2beta1.
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "tests/unit/mpijob/mpijob_world.hh"

using namespace trainer;
using namespace trainer::mpijob;
using namespace trainer::mpijob::test;

namespace {

constexpr std::string_view kResources =
    "containers: [{name: main, image: i, resources: {requests: {cpu: 500m}, limits: {cpu: 2, "
    "example.com/gpu: 1}}}]";

kube::Json job_with(std::string_view policy, std::string_view launcher = {},
                    std::string_view worker = {}) {
  const auto spec = [](std::string_view more) {
    return "{template: {spec: {" + std::string(more) + std::string(kResources) + "}}}";
  };
  return make_mpijob("spec: {runPolicy: {schedulingPolicy: {" + std::string(policy) +
                     "}}, mpiReplicaSpecs: {Launcher: " + spec(launcher) +
                     ", Worker: " + spec(worker) + "}}");
}

std::string group_of(kube::Json job, const std::string& scheduler,
                     std::map<std::string, int> priorities = {}) {
  MPIJobWorld world(make_mpijob("spec: {slotsPerWorker: -1}"),
                    {.gang_scheduler = scheduler, .cluster_domain = ""});
  for (const auto& [name, value] : priorities) {
    kube::ReadObject read;
    read.object = std::make_shared<const kube::Json>(kube::Json::object({{"value", value}}));
    world.named.set({kube::kPriorityClasses, {"", name}}, std::move(read));
  }
  world.objects["MPIJob/m"] = std::move(job);
  world.settle();
  return kube::print_json(world.at("PodGroup/m").get("spec"));
}

}  // namespace

TEST_CASE("a PodGroup has all pods of an MPIJob, and what they request") {
  CHECK(group_of(job_with(""), "volcano") ==
        R"({"minMember":3,"minResources":{"cpu":"1500m","example.com/gpu":"3"}})");
  CHECK(group_of(job_with(""), "mine") ==
        R"({"minMember":3,"minResources":{"cpu":"1500m","example.com/gpu":"3"},)"
        R"("scheduleTimeoutSeconds":0})");
  CHECK(group_of(make_mpijob(), "Volcano") == R"({"minMember":3,"minResources":{}})");
  CHECK(group_of(make_mpijob(), "mine") == R"({"minMember":3,"scheduleTimeoutSeconds":0})");
}

TEST_CASE("a scheduling policy of an MPIJob is in its PodGroup") {
  CHECK(group_of(job_with("minAvailable: 2, queue: q, priorityClass: p, minResources: {cpu: 7}"),
                 "volcano") ==
        R"({"minMember":2,"minResources":{"cpu":"7"},"priorityClassName":"p","queue":"q"})");
  CHECK(group_of(job_with("minAvailable: 2, scheduleTimeoutSeconds: 9"), "mine") ==
        R"({"minMember":2,"minResources":{"cpu":"1","example.com/gpu":"2"},)"
        R"("scheduleTimeoutSeconds":9})");
  CHECK(group_of(job_with("minAvailable: 0"), "volcano") == "{}");
  const auto annotated = kube::Json(
      make_mpijob("metadata: {annotations: {scheduling.volcano.sh/queue-name: research}}"));
  CHECK(group_of(annotated, "volcano") ==
        R"({"minMember":3,"minResources":{},"queue":"research"})");
  CHECK(group_of(make_mpijob("spec: {runPolicy: {queue: q}}"), "volcano") ==
        R"({"minMember":3,"minResources":{},"queue":"q"})");
}

TEST_CASE("of a part of an MPIJob's pods, the role of higher priority counts in full") {
  const std::map<std::string, int> priorities{{"high", 10}, {"low", 1}};
  const auto cpu = [&](std::string_view launcher, std::string_view worker) {
    return group_of(job_with("minAvailable: 2", launcher, worker), "mine", priorities);
  };
  CHECK(cpu("priorityClassName: high, ", "priorityClassName: low, ").find(R"("cpu":"1")") !=
        std::string::npos);
  CHECK(cpu("priorityClassName: low, ", "priorityClassName: high, ").find(R"("cpu":"1500m")") !=
        std::string::npos);
  // The classes are read before anything is planned.
  MPIJobWorld world(make_mpijob("spec: {slotsPerWorker: -1}"),
                    {.gang_scheduler = "mine", .cluster_domain = ""});
  world.objects["MPIJob/m"] = job_with("minAvailable: 2", "priorityClassName: high, ");
  const MPIJobPlan made = world.reconcile();
  CHECK(made.actions.empty());
  REQUIRE(made.needs_objects.size() == 1);
  CHECK(made.needs_objects[0].key.name == "high");
}

TEST_CASE("pods of an MPIJob's gang name it, under the scheduler of the gang") {
  const auto marks = [](const std::string& scheduler) {
    MPIJobWorld world(make_mpijob("spec: {mpiReplicaSpecs: {Worker: {template: {spec: "
                                  "{schedulerName: mine}}}}}"),
                      {.gang_scheduler = scheduler, .cluster_domain = ""});
    const auto& pod = world.at("Pod/m-worker-0");
    const auto& metadata = pod.get("metadata");
    return std::string(pod.get("spec").get_string("schedulerName")) + " " +
           std::string(metadata.get("annotations").get_string("scheduling.k8s.io/group-name")) +
           " " + std::string(metadata.get("labels").get_string("scheduling.x-k8s.io/pod-group"));
  };
  CHECK(marks("volcano") == "volcano m ");
  CHECK(marks("other") == "other  m");
  CHECK(marks("") == "mine  ");
}

TEST_CASE("a PodGroup follows its MPIJob, and goes with its pods") {
  MPIJobWorld world(make_mpijob(), {.gang_scheduler = "volcano", .cluster_domain = ""});
  world.objects.at("PodGroup/m")["spec"].set("minMember", 9).set("queue", "default");
  world.settle();
  CHECK(world.at("PodGroup/m").get("spec").get_int("minMember") == 3);
  CHECK(world.at("PodGroup/m").get("spec").get_string("queue") == "default");
  world.change("spec: {runPolicy: {suspend: true}}");
  CHECK_FALSE(world.has("PodGroup/m"));
  world.change("spec: {runPolicy: {suspend: false}}");
  CHECK(world.has("PodGroup/m"));
  world.launcher_ends("Complete");
  CHECK(world.has("PodGroup/m"));  // cleanPodPolicy None
  world.change("spec: {runPolicy: {cleanPodPolicy: Running}}");
  CHECK_FALSE(world.has("PodGroup/m"));
}
