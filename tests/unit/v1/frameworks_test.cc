// Rows P1 to P5, D1, J1 and SU1 to SU3, MB1 of the acceptance checklist; XGBoostJobs.
#include <fmt/format.h>

#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

using Names = std::vector<std::string>;

std::string envs(const World& world, const std::string& pod, const Names& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}{}", text.empty() ? "" : " ", world.env(pod, name));
  return text;
}

// The names of a container's variables, in order.
std::string env_names(const World& world, const std::string& pod) {
  std::string text;
  for (const Json& one :
       world.at("Pod/" + pod).get("spec").get_array("containers").front().get_array("env"))
    text += fmt::format("{}{}", text.empty() ? "" : " ", one.get_string("name"));
  return text;
}

std::size_t init_containers(const World& world, const std::string& pod) {
  return world.at("Pod/" + pod).get("spec").get_array("initContainers").size();
}

const Names kMasterEnv{"MASTER_ADDR",   "MASTER_PORT",        "WORLD_SIZE", "RANK",
                       "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_NNODES"};

struct Pair {
  const char* kind;
  const char* roles;
  const char* decider;  // the pod by which the job runs and succeeds
};
const std::vector<Pair> kDeciders{{"PyTorchJob", "Master Worker*2", "p-master-0"},
                                  {"TFJob", "Chief Worker*2", "p-chief-0"},
                                  {"XGBoostJob", "Master Worker*2", "p-master-0"},
                                  {"PaddleJob", "Master Worker*2", "p-master-0"},
                                  {"JAXJob", "Worker", "p-worker-0"},
                                  {"MPIJob", "Launcher Worker*2", "p-launcher"}};

}  // namespace

TEST_CASE("SU1: created suspended") {
  for (const auto& [kind, roles, decider] : kDeciders) {
    World world(make_job(kind, roles, "runPolicy: {suspend: true}"));
    INFO(kind);
    CHECK(world.objects.size() == 1);
    CHECK(world.conditions() == "Created Suspended");
    const Json& status = world.at(std::string(kind) + "/p").get("status");
    CHECK_FALSE(status.find("startTime"));
    CHECK_FALSE(status.find("replicaStatuses"));
    CHECK(world.message("Suspended") == fmt::format("{0}Suspended: {0} p is suspended.", kind));
    CHECK(world.has_event(fmt::format("Normal {0}Suspended: {0} p is suspended.", kind)));
  }
}

TEST_CASE("SU2, SU3: a running job is suspended and resumed") {
  for (const auto& [kind, roles, decider] : kDeciders) {
    INFO(kind);
    World world(make_job(kind, roles));
    const std::string key = std::string(kind) + "/p";
    world.pod(decider, "Running");
    CHECK(world.conditions() == "Created Running");
    const Json started = world.at(key).get("status").get("startTime");
    world.now = world.now + std::chrono::seconds(60);
    world.patch(key, yaml("spec: {runPolicy: {suspend: true}}"));
    world.settle();
    CHECK(world.names("Pod").empty());
    CHECK(world.names("Service").empty());
    CHECK(world.conditions() == "Created Running! Suspended");
    CHECK(world.at(key).get("status").get("startTime") == started);
    for (const auto& [role, counters] :
         world.at(key).get("status").get("replicaStatuses").as_object())
      CHECK(counters.get_int("active") == 0);
    world.patch(key, yaml("spec: {runPolicy: {suspend: false}}"));
    world.settle();
    world.pod(decider, "Running");
    CHECK(world.conditions() == "Created Suspended! Running");
    CHECK(world.message("Suspended") == fmt::format("{0}Resumed: {0} p is resumed.", kind));
    CHECK(world.at(key).get("status").get("startTime") != started);
    const int writes = world.writes;
    world.settle();
    CHECK(world.writes == writes);  // an unchanged job costs nothing
  }
}

TEST_CASE("MB1: jobs of MultiKueue are left alone") {
  for (const auto& [kind, roles, decider] : kDeciders) {
    World world(
        make_job(kind, roles, "runPolicy: {suspend: true, managedBy: kueue.x-k8s.io/multikueue}"));
    world.patch(std::string(kind) + "/p", yaml("spec: {runPolicy: {suspend: false}}"));
    world.settle();
    CHECK(world.writes == 0);
    CHECK(world.objects.size() == 1);
  }
}

TEST_CASE("P1: master and workers") {
  World world(make_job("PyTorchJob", "Master Worker*2"));
  CHECK(world.names("Pod") == Names{"p-master-0", "p-worker-0", "p-worker-1"});
  CHECK(world.names("Service") == Names{"p", "p-master-0", "p-worker-0", "p-worker-1"});
  CHECK(env_names(world, "p-worker-1") ==
        "PYTHONUNBUFFERED MASTER_PORT PET_MASTER_PORT MASTER_ADDR PET_MASTER_ADDR WORLD_SIZE RANK "
        "PET_NODE_RANK PET_NPROC_PER_NODE PET_NNODES");
  CHECK(envs(world, "p-worker-1", kMasterEnv) == "p-master-0 23456 3 2 2 auto 3");
  world.pod("p-master-0", "Running");
  CHECK(world.message("Running") == "PyTorchJobRunning: PyTorchJob p is running.");
  world.pod("p-master-0", "Succeeded", 0);
  CHECK(world.message("Succeeded") ==
        "PyTorchJobSucceeded: PyTorchJob p is successfully completed.");
  CHECK(world.at("PyTorchJob/p").get("status").find("completionTime"));
}

TEST_CASE("P2, P3: an elastic job, its autoscaler, and any worker's success") {
  World world(make_job("PyTorchJob", "Worker*3",
                       "elasticPolicy: {minReplicas: 1, maxReplicas: 4, maxRestarts: 3, metrics: "
                       "[{type: Resource, resource: {name: cpu, target: {type: AverageValue, "
                       "averageValue: '0.5'}}}]}"));
  CHECK(envs(world, "p-worker-0",
             {"PET_RDZV_BACKEND", "PET_NNODES", "PET_RDZV_ENDPOINT", "PET_MAX_RESTARTS"}) ==
        "c10d 1:4 p-worker-0:23456 3");
  CHECK(world.env("p-worker-0", "MASTER_ADDR") == "-");
  const Json spec = world.at("HorizontalPodAutoscaler/p").get("spec");
  CHECK(spec.get("scaleTargetRef") ==
        yaml("{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: p}"));
  CHECK(spec.get_int("minReplicas") == 1);
  CHECK(spec.get_int("maxReplicas") == 4);
  world.patch("PyTorchJob/p", yaml("spec: {elasticPolicy: {maxReplicas: 5}}"));
  world.settle();
  CHECK(world.at("HorizontalPodAutoscaler/p").get("spec").get_int("maxReplicas") == 5);
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: true}}"));
  world.settle();
  CHECK_FALSE(world.has("HorizontalPodAutoscaler/p"));
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: false}}"));
  world.settle();
  CHECK(world.has("HorizontalPodAutoscaler/p"));
  world.pod("p-worker-1", "Succeeded", 0);
  CHECK(world.message("Succeeded") ==
        "PyTorchJobSucceeded: PyTorchJob ns/p successfully completed.");
  CHECK(world.has("HorizontalPodAutoscaler/p"));
}

TEST_CASE("P2: an elastic job may have a Master, and then has the variables of both") {
  World world(make_job("PyTorchJob", "Master Worker*2",
                       "elasticPolicy: {minReplicas: 2, maxReplicas: 3, rdzvBackend: c10d}"));
  for (const auto& [pod, rank] : std::vector<std::pair<const char*, const char*>>{
           {"p-master-0", "0"}, {"p-worker-0", "1"}, {"p-worker-1", "2"}}) {
    INFO(pod);
    CHECK(env_names(world, pod) ==
          "PYTHONUNBUFFERED MASTER_PORT PET_MASTER_PORT MASTER_ADDR PET_MASTER_ADDR WORLD_SIZE "
          "RANK PET_NODE_RANK PET_NPROC_PER_NODE PET_RDZV_ENDPOINT PET_RDZV_BACKEND PET_NNODES");
    CHECK(envs(world, pod, {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PET_NODE_RANK"}) ==
          fmt::format("p-master-0 23456 3 {0} {0}", rank));
    CHECK(envs(world, pod, {"PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND", "PET_NNODES"}) ==
          "p-worker-0:23456 c10d 2:3");
  }
  CHECK(init_containers(world, "p-worker-0") == 1);
  // The Master decides, not the first worker that succeeds.
  world.all_pods("Running");
  world.pod("p-worker-0", "Succeeded", 0);
  CHECK(world.conditions() == "Created Running");
  world.pod("p-master-0", "Succeeded", 0);
  CHECK(world.conditions() == "Created Running! Succeeded");
}

TEST_CASE("P4: init containers of workers that have a master") {
  World alone(make_job("PyTorchJob", "Worker*2"));
  CHECK(init_containers(alone, "p-worker-0") == 0);
  World world;
  world.settings.init_container_image = "registry/busybox:1";
  world.apply(make_job("PyTorchJob", "Master Worker"));
  world.settle();
  CHECK(init_containers(world, "p-master-0") == 0);
  REQUIRE(init_containers(world, "p-worker-0") == 1);
  const Json& container =
      world.at("Pod/p-worker-0").get("spec").get_array("initContainers").front();
  CHECK(container.get_string("image") == "registry/busybox:1");
  CHECK(kube::print_json(container).find("seq 100") != std::string::npos);
  CHECK(kube::print_json(container).find("nslookup p-master-0 ") != std::string::npos);
  world.settings.init_container_template = "- {name: own, image: 'a{{ .InitContainerImage }}'}";
  world.apply(make_job("PyTorchJob", "Master Worker", "", "q"));
  world.settle();
  CHECK(world.at("Pod/q-worker-0").get("spec").get_array("initContainers") ==
        yaml("[{name: own, image: 'aregistry/busybox:1'}]").as_array());
  CHECK(pytorch::check_init_template(world.settings.init_container_template).empty());
  CHECK(pytorch::check_init_template("- {name: '{{.Other}}'}").find("only {{.MasterAddr}}") == 0);
  CHECK(pytorch::check_init_template("name: x") ==
        "the template of init containers must be a YAML list");
  CHECK_FALSE(pytorch::check_init_template("[").empty());
}

TEST_CASE("P5: variables of an elastic job") {
  World none(make_job("PyTorchJob", "Worker*2"));
  CHECK(env_names(none, "p-worker-0") == "PYTHONUNBUFFERED PET_NPROC_PER_NODE PET_NNODES");
  World world(
      make_job("PyTorchJob", "Worker*2",
               "elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvBackend: etcd, rdzvHost: "
               "h, rdzvPort: 1234, rdzvId: id, nProcPerNode: 4, standalone: true, rdzvConf: "
               "[{key: a, value: b}, {key: c, value: d}]}"));
  CHECK(env_names(world, "p-worker-0") ==
        "PYTHONUNBUFFERED PET_RDZV_ENDPOINT PET_RDZV_BACKEND PET_NNODES PET_NPROC_PER_NODE "
        "PET_RDZV_ID PET_RDZV_CONF PET_STANDALONE");
  CHECK(envs(world, "p-worker-0",
             {"PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND", "PET_NNODES", "PET_NPROC_PER_NODE",
              "PET_RDZV_ID", "PET_RDZV_CONF"}) == "h:1234 etcd 1:3 4 id a=b,c=d");
  World number(make_job("PyTorchJob", "Master Worker", "nprocPerNode: '4'"));
  CHECK(envs(number, "p-worker-0", kMasterEnv) == "p-master-0 23456 8 1 1 4 2");
  for (const auto& [text, size] : std::vector<std::pair<const char*, const char*>>{
           {"+4", "8"}, {"+-4", "2"}, {"04", "8"}, {"gpu", "2"}, {"4.5", "2"}}) {
    World world_size(
        make_job("PyTorchJob", "Master Worker", fmt::format("nprocPerNode: '{}'", text)));
    INFO(text);
    CHECK(world_size.env("p-worker-0", "WORLD_SIZE") == size);
    CHECK(world_size.env("p-worker-0", "PET_NPROC_PER_NODE") == text);
  }
}

TEST_CASE("PyTorch: failures by restart policy, and workers that decide") {
  World never(make_job("PyTorchJob", "Master Worker", "roles: {Worker: {restartPolicy: Never}}"));
  never.pod("p-master-0", "Running");
  never.pod("p-worker-0", "Failed", 1);
  CHECK(never.conditions() == "Created Running! Failed");
  CHECK(never.message("Failed") ==
        "PyTorchJobFailed: PyTorchJob p is failed because 1 Worker replica(s) failed.");
  World again(make_job("PyTorchJob", "Master Worker"));
  again.pod("p-master-0", "Running");
  again.pod("p-worker-0", "Failed", 1);
  CHECK(again.conditions() == "Created Running");  // the new worker waits, the master runs
  CHECK(again.at("Pod/p-worker-0").get("status").get_string("phase") == "Pending");
  CHECK(
      again.has_event("Warning PyTorchJobRestarting: PyTorchJob p is restarting because 1 Worker"));
  World workers(make_job("PyTorchJob", "Worker*2"));
  workers.pod("p-worker-0", "Succeeded", 0);
  CHECK(workers.conditions() == "Created");
  workers.pod("p-worker-1", "Succeeded", 0);
  CHECK(workers.conditions() == "Created Succeeded");
}

TEST_CASE("XGBoost: variables, and any failed pod") {
  World world(make_job("XGBoostJob", "Master Worker*2"));
  CHECK(env_names(world, "p-worker-1") ==
        "MASTER_PORT MASTER_ADDR WORLD_SIZE RANK PYTHONUNBUFFERED WORKER_PORT WORKER_ADDRS");
  CHECK(envs(world, "p-worker-1",
             {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_PORT", "WORKER_ADDRS"}) ==
        "p-master-0 9999 3 2 9999 p-worker-0,p-worker-1");
  World alone(make_job("XGBoostJob", "Master"));
  CHECK(alone.env("p-master-0", "WORKER_ADDRS") == "-");
  for (const auto& [policy, expected] :
       std::vector<std::pair<const char*, const char*>>{{"Never", "Created Running! Failed"},
                                                        {"OnFailure", "Created Running! Failed"},
                                                        {"Always", "Created Running! Failed"}}) {
    World failing(make_job("XGBoostJob", "Master Worker",
                           fmt::format("roles: {{Worker: {{restartPolicy: {}}}}}", policy)));
    failing.pod("p-worker-0", "Failed", 1);
    INFO(policy);
    CHECK(failing.conditions() == expected);
  }
  World code(make_job("XGBoostJob", "Master Worker", "roles: {Worker: {restartPolicy: ExitCode}}"));
  code.pod("p-worker-0", "Failed", 137);
  CHECK(code.conditions() == "Created Restarting");
  code.pod("p-master-0", "Succeeded", 0);
  CHECK(code.conditions() == "Created Running! Succeeded");
}

TEST_CASE("D1: Paddle, collective and with a master") {
  World world(make_job("PaddleJob", "Worker*2"));
  CHECK(envs(world, "p-worker-0", {"PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER"}) ==
        "p 2 $(POD_IP_DUMMY):36543");
  CHECK(world.env("p-worker-1", "PADDLE_MASTER") == "p-worker-0:36543");
  World served(make_job("PaddleJob", "Master*2 Worker"));
  CHECK(served.env("p-master-0", "PADDLE_MASTER") == "$(POD_IP_DUMMY):36543");
  CHECK(envs(served, "p-master-1", {"PADDLE_MASTER", "PADDLE_SERVER_NUM", "PADDLE_TRAINER_NUM"}) ==
        "p-master-0:36543 1 -");
  CHECK(envs(served, "p-worker-0", {"PADDLE_MASTER", "PADDLE_SERVER_NUM", "PADDLE_TRAINER_NUM"}) ==
        "p-master-0:36543 - 1");
  world.all_pods("Succeeded");
  CHECK(world.message("Succeeded") == "PaddleJobSucceeded: PaddleJob ns/p successfully completed.");
}

TEST_CASE("J1: JAX") {
  World world(make_job("JAXJob", "Worker*3"));
  CHECK(env_names(world, "p-worker-2") ==
        "PYTHONUNBUFFERED COORDINATOR_PORT COORDINATOR_ADDRESS NUM_PROCESSES PROCESS_ID");
  CHECK(envs(world, "p-worker-2",
             {"COORDINATOR_PORT", "COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID"}) ==
        "6666 p-worker-0 3 2");
  world.pod("p-worker-1", "Failed", 1);
  CHECK(world.message("Failed") ==
        "JAXJobFailed: JAXJob p is failed because 1 Worker replica(s) failed.");
}

TEST_CASE("E5, E6: pods by the names that the SDK expects") {
  World three(make_job("PyTorchJob", "Master Worker*2"));
  CHECK(three.names("Pod").size() == 3);
  CHECK(three.has("Pod/p-worker-0"));
  World one(make_job("PyTorchJob", "Worker"));
  one.pod("p-worker-0", "Running");
  one.pod("p-worker-0", "Succeeded", 0);
  CHECK(one.conditions() == "Created Running! Succeeded");
}

TEST_CASE("what a job has when it starts, for render") {
  Settings settings;
  settings.gang_scheduler = "volcano";
  const V1Job job = read(make_job("MPIJob", "Launcher Worker", "runPolicy: {suspend: true}"));
  std::string kinds;
  for (const Json& child : all_children(framework_of("MPIJob"), job, settings))
    kinds += std::string(child.get_string("kind")) + " ";
  CHECK(kinds == "PodGroup ServiceAccount ConfigMap Role RoleBinding Pod Pod ");
  kinds.clear();
  const V1Job other = read(make_job("JAXJob", "Worker"));
  for (const Json& child : all_children(framework_of("JAXJob"), other, {}))
    kinds += std::string(child.get("metadata").get_string("name")) + " ";
  CHECK(kinds == "p p-worker-0 p-worker-0 ");
}
