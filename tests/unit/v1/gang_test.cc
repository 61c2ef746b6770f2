// Gangs: rows CO13, E2, E3 and E8 of the acceptance checklist.
#include <fmt/format.h>

#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

World gang(const std::string& scheduler, std::string_view roles, std::string_view more = {},
           std::string_view kind = "PyTorchJob") {
  World world;
  world.settings.gang_scheduler = scheduler;
  CHECK(world.apply(make_job(kind, roles, more)) == 201);
  world.settle();
  return world;
}

Json spec(const World& world) {
  return world.at("PodGroup/p").get("spec");
}

void admit(World& world) {
  world.patch("PodGroup/p", yaml("status: {phase: Inqueue}"));
  world.settle();
}

std::string with_resources(std::string_view resources) {
  return fmt::format(
      "roles: {{Worker: {{template: {{spec: {{containers: [{{name: pytorch, image: i, "
      "resources: {}}}]}}}}}}}}",
      resources);
}

std::string with_schedulers(std::string_view role, std::string_view scheduler,
                            std::string_view of_workers) {
  constexpr std::string_view kRole = "{}: {{template: {{spec: {{schedulerName: {}}}}}}}";
  return fmt::format("roles: {{{}, {}}}", fmt::format(kRole, role, scheduler),
                     fmt::format(kRole, "Worker", of_workers));
}

}  // namespace

TEST_CASE("E8: with Volcano pods wait for the PodGroup") {
  World world = gang("Volcano", "Master Worker*3");
  CHECK(spec(world) == yaml("{minMember: 4, minResources: {}, queue: default}"));
  CHECK(world.names("Pod").empty());
  CHECK(world.names("Service").empty());
  const Json status = world.at("PyTorchJob/p").get("status");
  CHECK(world.conditions() == "Created");
  CHECK(status.find("lastReconcileTime"));
  CHECK_FALSE(status.find("startTime"));
  CHECK_FALSE(status.find("replicaStatuses"));
  world.patch("PodGroup/p", yaml("status: {phase: Pending}"));
  world.settle();
  CHECK(world.names("Pod").empty());
  admit(world);
  CHECK(world.names("Pod").size() == 4);
  const Json& pod = world.at("Pod/p-worker-0");
  CHECK(pod.get("spec").get_string("schedulerName") == "volcano");
  CHECK(pod.get("metadata").get("annotations") ==
        yaml("{scheduling.k8s.io/group-name: p, volcano.sh/task-spec: worker}"));
  // A group that waits again does not stop a job that has pods.
  world.patch("PodGroup/p", yaml("status: {phase: Pending}"));
  world.all_pods("Running");
  CHECK(world.conditions() == "Created Running");
  world.pod("p-master-0", "Succeeded", 0);
  CHECK_FALSE(world.has("PodGroup/p"));
  CHECK(world.has_event("Normal JobTerminated: Job has been terminated. Deleting PodGroup"));
  CHECK(world.has_event("Normal SuccessfulDeletePodGroup: Deleted PodGroup: p"));
}

TEST_CASE(
    "workers that had succeeded run again after a resume, also where they wait for their gang") {
  World world = gang("volcano", "Master Worker");
  admit(world);
  world.pod("p-master-0", "Running");
  world.pod("p-worker-0", "Succeeded", 0);
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: true}}"));
  world.settle();
  CHECK(world.names("Pod").empty());
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: false}}"));
  world.settle();
  CHECK(world.names("Pod").empty());
  admit(world);
  CHECK(world.names("Pod") == std::vector<std::string>{"p-master-0", "p-worker-0"});
  CHECK(world.counters("Worker") == "");
}

TEST_CASE("gangs of all kinds") {
  struct Row {
    const char* kind;
    const char* roles;
    std::vector<const char*> pods;
    int members;
  };
  for (const Row& row : std::vector<Row>{
           {"PyTorchJob", "Master Worker*2", {"p-master-0", "p-worker-0", "p-worker-1"}, 3},
           {"TFJob", "Chief PS Worker*2", {"p-chief-0", "p-ps-0", "p-worker-0", "p-worker-1"}, 4},
           {"XGBoostJob", "Master Worker", {"p-master-0", "p-worker-0"}, 2},
           {"PaddleJob", "Master Worker", {"p-master-0", "p-worker-0"}, 2},
           {"JAXJob", "Worker*3", {"p-worker-0", "p-worker-1", "p-worker-2"}, 3},
           {"MPIJob", "Launcher Worker*2", {"p-launcher", "p-worker-0", "p-worker-1"}, 3}}) {
    for (const std::string scheduler : {"volcano", "my-scheduler"}) {
      INFO(row.kind << " " << scheduler);
      const bool is_volcano = scheduler == "volcano";
      World world = gang(scheduler, row.roles, "", row.kind);
      const Json& group = world.at("PodGroup/p");
      CHECK(group.get_string("apiVersion") ==
            (is_volcano ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1"));
      CHECK(spec(world).get_int("minMember") == row.members);
      CHECK(kube::ObjectMeta::of(group).controller()->kind == row.kind);
      CHECK(world.names("Pod").empty() == is_volcano);  // Volcano's pods wait for their group
      if (is_volcano) admit(world);
      CHECK(world.names("Pod") == std::vector<std::string>(row.pods.begin(), row.pods.end()));
      for (const std::string name : row.pods) {
        INFO(name);
        const Json& pod = world.at("Pod/" + name);
        const Json& meta = pod.get("metadata");
        const std::string role = name.substr(2, name.find('-', 2) - 2);
        CHECK(pod.get("spec").get_string("schedulerName") == scheduler);
        CHECK(meta.get("annotations").get_string("scheduling.k8s.io/group-name") ==
              (is_volcano ? "p" : ""));
        CHECK(meta.get("annotations").get_string("volcano.sh/task-spec") ==
              (is_volcano ? role : ""));
        CHECK(meta.get("labels").get_string("scheduling.x-k8s.io/pod-group") ==
              (is_volcano ? "" : "p"));
      }
    }
  }
}

TEST_CASE("E2, E3: minAvailable may be corrected while the job waits") {
  World world =
      gang("volcano", "Master Worker", "runPolicy: {schedulingPolicy: {minAvailable: 10}}");
  CHECK(spec(world).get_int("minMember") == 10);
  world.advance(15);
  CHECK(world.conditions() == "Created");
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {schedulingPolicy: {minAvailable: 2}}}"));
  world.settle();
  CHECK(spec(world).get_int("minMember") == 2);
  admit(world);
  world.all_pods("Running");
  CHECK(world.conditions() == "Created Running");
}

TEST_CASE("what a PodGroup asks for") {
  World policy = gang("volcano", "Worker*2",
                      "runPolicy: {schedulingPolicy: {queue: q, priorityClass: high, minResources: "
                      "{cpu: 3, memory: 2Gi}, scheduleTimeoutSeconds: 5}}");
  CHECK(spec(policy) ==
        yaml("{minMember: 2, queue: q, priorityClassName: high, minResources: {cpu: "
             "'3', memory: 2Gi}}"));
  CHECK(spec(gang("volcano", "Worker", "runPolicy: {queue: a}")).get_string("queue") == "a");
  World other = gang("my-scheduler", "Worker*2",
                     "runPolicy: {schedulingPolicy: {queue: q, scheduleTimeoutSeconds: 5}}");
  CHECK(spec(other) == yaml("{minMember: 2, scheduleTimeoutSeconds: 5}"));
  CHECK(other.at("PodGroup/p").get_string("apiVersion") == "scheduling.x-k8s.io/v1alpha1");
  CHECK(other.names("Pod").size() == 2);  // they do not wait
  CHECK(other.at("Pod/p-worker-0").get("spec").get_string("schedulerName") == "my-scheduler");
  CHECK(other.at("Pod/p-worker-0")
            .get("metadata")
            .get("labels")
            .get_string("scheduling.x-k8s.io/pod-group") == "p");
  CHECK_FALSE(other.at("PyTorchJob/p").get("status").find("lastReconcileTime"));
  // Requests of the first minMember pods; limits only where a container has no requests.
  const auto resources = [](std::string_view text, std::string_view more = {}) {
    return spec(gang("volcano", "Worker*3", with_resources(text) + std::string(more)))
        .get("minResources");
  };
  CHECK(resources("{requests: {cpu: 500m}, limits: {memory: 1Gi}}") == yaml("{cpu: 1500m}"));
  CHECK(resources("{limits: {memory: 1Gi}}") == yaml("{memory: 3Gi}"));
  CHECK(resources("{}") == Json::object());
  CHECK(resources("{requests: {}, limits: {memory: 1Gi}}") == Json::object());
  World two = gang("volcano", "Master Worker*3",
                   "{runPolicy: {schedulingPolicy: {minAvailable: 2}}, " +
                       with_resources("{requests: {cpu: 1}}") + "}");
  CHECK(spec(two).get("minResources") == yaml("{cpu: '1'}"));  // the master and one worker
}

TEST_CASE("minResources are written as the API machinery prints them") {
  for (const auto& [stated, written] : std::vector<std::pair<const char*, const char*>>{
           {"{cpu: 1000m, memory: 2048Mi}", "{cpu: '1', memory: 2Gi}"},
           {"{cpu: '0.5'}", "{cpu: 500m}"},
           {"{memory: 8589934592}", "{memory: '8589934592'}"},  // more than 32 bits
           {"{cpu: 3000}", "{cpu: 3k}"},
           {"{nvidia.com/gpu: 2}", "{nvidia.com/gpu: '2'}"}}) {
    for (const char* scheduler : {"volcano", "my-scheduler"}) {
      INFO(stated << " " << scheduler);
      World world =
          gang(scheduler, "Worker*2",
               fmt::format("runPolicy: {{schedulingPolicy: {{minResources: {}}}}}", stated));
      CHECK(spec(world).get("minResources") == yaml(written));
    }
  }
  World none = gang("my-scheduler", "Worker*2", "runPolicy: {schedulingPolicy: {minAvailable: 0}}");
  CHECK_FALSE(spec(none).find("minMember"));
}

TEST_CASE("minResources that are empty are not written again where they were left out") {
  World world = gang("volcano", "Worker*2");
  world.objects["PodGroup/p"]["spec"].erase("minResources");
  const int writes = world.writes;
  world.settle();
  CHECK(world.writes == writes);
}

TEST_CASE("the queue of a PodGroup stays, and annotations go with it") {
  World world;
  world.settings.gang_scheduler = "volcano";
  Json job = make_job("PyTorchJob", "Worker", "runPolicy: {schedulingPolicy: {minAvailable: 1}}");
  job["metadata"].set("annotations", yaml("{a: b}"));
  world.apply(job);
  world.settle();
  CHECK(world.at("PodGroup/p").get("metadata").get("annotations") == yaml("{a: b}"));
  world.patch("PodGroup/p", yaml("spec: {queue: moved}"));
  world.patch("PyTorchJob/p", yaml("spec: {pytorchReplicaSpecs: {Worker: {replicas: 2}}}"));
  world.settle();
  CHECK(spec(world).get_string("queue") == "moved");
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: true}}"));
  world.settle();
  CHECK_FALSE(world.has("PodGroup/p"));
}

TEST_CASE("a PodGroup of another job is left alone") {
  World world;
  world.settings.gang_scheduler = "my-scheduler";
  world.apply(
      yaml("{kind: PodGroup, metadata: {name: p, ownerReferences: [{kind: TrainJob, name: p, "
           "uid: other, controller: true}]}, spec: {minMember: 1}}"));
  world.apply(make_job("PyTorchJob", "Worker*2"));
  world.settle();
  CHECK(world.names("Pod").empty());
  CHECK(spec(world).get_int("minMember") == 1);
  CHECK(
      world.has_event("Warning ErrResourceExists: PodGroup p belongs to TrainJob p; delete that"));
  CHECK(world.conditions() == "ReplicaFailure Created");
}

TEST_CASE("CO13: a scheduler of the user's own is kept, with a warning") {
  for (const auto& [master, worker, warns] :
       std::vector<std::tuple<const char*, const char*, bool>>{{"''", "''", false},
                                                               {"own", "own", true},
                                                               {"own", "''", true},
                                                               {"volcano", "''", false}}) {
    World world = gang("volcano", "Master Worker", with_schedulers("Master", master, worker));
    admit(world);
    CHECK(world.has_event("Warning SetPodTemplateSchedulerName: Another scheduler is specified") ==
          warns);
    const std::string_view own = std::string_view(master) == "''" ? "volcano" : master;
    CHECK(world.at("Pod/p-master-0").get("spec").get_string("schedulerName") == own);
  }
}

TEST_CASE("an MPIJob is warned unless one of its templates names the gang scheduler") {
  for (const auto& [launcher, worker, warns] :
       std::vector<std::tuple<const char*, const char*, bool>>{{"''", "''", true},
                                                               {"own", "''", true},
                                                               {"own", "volcano", false},
                                                               {"volcano", "''", false}}) {
    World world =
        gang("volcano", "Launcher Worker", with_schedulers("Launcher", launcher, worker), "MPIJob");
    admit(world);
    INFO(launcher << " " << worker);
    CHECK(world.has_event("Warning SettedPodTemplateSchedulerName: Another scheduler") == warns);
  }
}

TEST_CASE("an autoscaler does not wait for the gang, the objects of an MPIJob do") {
  World elastic = gang("volcano", "Worker*2", "elasticPolicy: {maxReplicas: 4, metrics: []}");
  CHECK(elastic.names("Pod").empty());
  CHECK(elastic.has("HorizontalPodAutoscaler/p"));
  CHECK(elastic.conditions() == "Created");
  World mpi = gang("volcano", "Launcher Worker", "", "MPIJob");
  CHECK(mpi.has("PodGroup/p"));
  CHECK_FALSE(mpi.has("ConfigMap/p-config"));
  CHECK_FALSE(mpi.has("ServiceAccount/p-launcher"));
  admit(mpi);
  CHECK(mpi.has("ConfigMap/p-config"));
  CHECK(mpi.names("Pod").size() == 2);
}
