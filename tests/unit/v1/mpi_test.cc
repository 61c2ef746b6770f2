// Rows M1 to M15 of the acceptance checklist.
#include <fmt/format.h>

#include "runtimes/v1/context.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

using Names = std::vector<std::string>;

constexpr const char* kMPIJobKey = "MPIJob/p";

std::string_view data(const World& world, std::string_view file) {
  return world.at("ConfigMap/p-config").get("data").get_string(file);
}

}  // namespace

TEST_CASE("M1: a launcher with GPUs is a host") {
  for (const auto& [resource, is_host] :
       std::vector<std::pair<const char*, bool>>{{"nvidia.com/gpu", true},
                                                 {"vendor-domain/gpu", true},
                                                 {"vendor.com/gpu-x", true},
                                                 {"vendor-domain/other", false}}) {
    World world(make_job("MPIJob", "Launcher Worker",
                         fmt::format("{{slotsPerWorker: 2, roles: {{Launcher: {{template: {{spec: "
                                     "{{containers: [{{name: mpi, image: i, resources: {{limits: "
                                     "{{{}: 1}}}}}}]}}}}}}}}}}",
                                     resource)));
    INFO(resource);
    CHECK(data(world, "hostfile") ==
          (is_host ? "p-launcher slots=2\np-worker-0 slots=2\n" : "p-worker-0 slots=2\n"));
    CHECK((world.env("p-launcher", "NVIDIA_VISIBLE_DEVICES") == "-") == is_host);
    world.pod("p-worker-0", "Running");
    CHECK(data(world, "discover_hosts.sh") ==
          (is_host ? "#!/bin/sh\necho p-launcher:2\n\necho p-worker-0:2"
                   : "#!/bin/sh\necho p-worker-0:2"));
  }
}

TEST_CASE("M2 to M6: counters and conditions") {
  World world(make_job("MPIJob", "Launcher Worker*2"));
  CHECK(world.counters("Launcher") == "");
  world.pod("p-launcher", "Running");
  CHECK(world.counters("Launcher") == "1 active");  // M5
  CHECK(world.counters("Worker") == "");
  CHECK(world.message("Running") == "MPIJobRunning: MPIJob p is running.");
  CHECK_FALSE(world.has_event("MPIJob ns/p is running"));
  world.pod("p-worker-0", "Running");
  world.pod("p-worker-1", "Running");
  CHECK(world.counters("Worker") == "2 active");  // M6
  CHECK(world.has_event("Normal MPIJobRunning: MPIJob ns/p is running"));
  world.pod("p-launcher", "Succeeded", 0);
  CHECK(world.counters("Launcher") == "1 succeeded");  // M2
  CHECK(world.counters("Worker") == "");               // M4
  CHECK(world.conditions() == "Created Running! Succeeded");
  CHECK(world.message("Succeeded") == "MPIJobSucceeded: MPIJob p is successfully completed.");
  CHECK(world.has_event("Normal mpijobsSucceeded: MPIJob ns/p successfully completed."));
  CHECK(world.names("Pod").size() == 3);  // sleeping workers outlive the job

  World failed(make_job("MPIJob", "Launcher Worker"));
  failed.pod("p-launcher", "Failed", 1);
  CHECK(failed.counters("Launcher") == "1 failed");  // M3
  CHECK(failed.message("Failed") ==
        "MPIJobMPIJobFailed: MPIJob p is failed because 1 Launcher replica(s) failed.");
  CHECK(failed.has_event("Normal MPIJobFailed: MPIJob p is failed"));
  CHECK(failed.has_event("Warning MPIJobFailed: MPIJob ns/p has failed"));
}

TEST_CASE("M7: workers run, and the launcher is created") {
  World world(make_job("MPIJob", "Launcher Worker*2"));
  world.all_pods("Running");
  world.remove("Pod/p-launcher");
  world.settle();
  CHECK(world.names("Pod") == Names{"p-launcher", "p-worker-0", "p-worker-1"});
  CHECK(world.has_event("Normal MPIJobRunning: launcher pod created success: p-launcher"));
  CHECK(world.has_event("Normal SuccessfulCreatePod: Created worker pod: p-worker-0"));
  CHECK(world.names("Service").empty());
  CHECK(world.at("Pod/p-launcher").get("metadata").get("labels") ==
        yaml("{training.kubeflow.org/operator-name: mpijob-controller, "
             "training.kubeflow.org/job-name: p, training.kubeflow.org/replica-type: launcher, "
             "training.kubeflow.org/job-role: master}"));
}

TEST_CASE("M9: the launcher's own service account") {
  World world(make_job("MPIJob", "Launcher Worker",
                       "roles: {Launcher: {template: {spec: {serviceAccountName: sa}}}}"));
  CHECK(world.names("ServiceAccount") == Names{"sa"});
  CHECK(world.at("Pod/p-launcher").get("spec").get_string("serviceAccountName") == "sa");
  CHECK(world.at("RoleBinding/p-launcher").get_array("subjects").front().get_string("name") ==
        "sa");
  World existing;
  existing.apply(yaml("{kind: ServiceAccount, metadata: {name: sa}}"));
  existing.apply(make_job("MPIJob", "Launcher",
                          "roles: {Launcher: {template: {spec: {serviceAccountName: sa}}}}"));
  existing.settle();
  CHECK(existing.has("Pod/p-launcher"));
  CHECK(existing.has_event("Normal ServiceAccount is exist: ServiceAccount: sa"));
}

TEST_CASE("M10, M11: creates name the job as the owner that must be there") {
  // The create finds a foreign pod of the name, and its error names the owner.
  Json job = make_job("MPIJob", "Launcher Worker");
  Settings settings;
  const V1Job read_back = read(job);
  kube::NamedObjects objects;
  for (const kube::Resource& each :
       {kube::kServiceAccounts, kube::kConfigMaps, kube::kRoles, kube::kRoleBindings})
    objects.set({each, {"", each == kube::kConfigMaps ? "p-config" : "p-launcher"}}, {});
  const Observed observed{framework_of("MPIJob"), read_back, {}, {}, objects, {}, {}, settings, {}};
  const V1JobPlan made = plan(observed);
  REQUIRE(made.actions.size() == 6);
  for (const kube::Action& action : made.actions) {
    CHECK(action.owner_uid == "job-uid");
    CHECK(action.stage == (action.resource.kind == "Pod"           ? kWithPods
                           : action.resource.kind == "RoleBinding" ? kAfterRbacRoles
                                                                   : kBeforePods));
  }
}

TEST_CASE("M12, M13, M14: objects of others are refused with upstream's words") {
  for (const auto& [kind, name] : std::vector<std::pair<const char*, const char*>>{
           {"ConfigMap", "p-config"}, {"Role", "p-launcher"}, {"RoleBinding", "p-launcher"}}) {
    World world;
    world.apply(Json::object({{"kind", kind}, {"metadata", Json::object({{"name", name}})}}));
    world.apply(make_job("MPIJob", "Launcher Worker"));
    world.settle();
    INFO(kind);
    CHECK(world.names("Pod").empty());
    CHECK(
        world.has_event(fmt::format("Warning ErrResourceExists: Resource \"{}\" of MPIJobKind "
                                    "\"{}\" already exists and is not managed by MPIJob",
                                    name, kind)));
    CHECK(world.reconcile(kMPIJobKey).requeue_after == std::chrono::seconds(10));
  }
}

TEST_CASE("M15: bootstrap variables of Intel MPI") {
  for (const auto& [own, bootstrap, exec] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"[]", "rsh", "/etc/mpi/kubexec.sh"},
           {"[{name: I_MPI_HYDRA_BOOTSTRAP, value: a}]", "a", "/etc/mpi/kubexec.sh"},
           {"[{name: I_MPI_HYDRA_BOOTSTRAP_EXEC, value: b}]", "rsh", "b"},
           {"[{name: I_MPI_HYDRA_BOOTSTRAP, value: a}, {name: I_MPI_HYDRA_BOOTSTRAP_EXEC, value: "
            "b}]",
            "a", "b"}}) {
    World world(
        make_job("MPIJob", "Launcher",
                 fmt::format("roles: {{Launcher: {{template: {{spec: {{containers: [{{name: "
                             "mpi, image: i, env: {}}}]}}}}}}}}",
                             own)));
    CHECK(world.env("p-launcher", "I_MPI_HYDRA_BOOTSTRAP") == bootstrap);
    CHECK(world.env("p-launcher", "I_MPI_HYDRA_BOOTSTRAP_EXEC") == exec);
    CHECK(world.at("Pod/p-launcher")
              .get("spec")
              .get_array("containers")
              .front()
              .get_array("env")
              .size() == 6);
  }
}

TEST_CASE("the hosts follow the workers, and the role as well") {
  World world(make_job("MPIJob", "Launcher Worker*2", "mainContainer: main"));
  CHECK(data(world, "hostfile") == "p-worker-0 slots=1\np-worker-1 slots=1\n");
  CHECK(data(world, "discover_hosts.sh") == "#!/bin/sh");
  CHECK(data(world, "kubexec.sh").find("--container main -- /bin/sh -c \"$*\"") !=
        std::string::npos);
  world.pod("p-worker-1", "Running");
  CHECK(data(world, "discover_hosts.sh") == "#!/bin/sh\necho p-worker-1:1");
  world.patch(kMPIJobKey, yaml("spec: {mpiReplicaSpecs: {Worker: {replicas: 3}}}"));
  world.settle();
  CHECK(data(world, "hostfile").find("p-worker-2 slots=1") != std::string::npos);
  CHECK(world.at("Role/p-launcher").get_array("rules").at(1).get("resourceNames") ==
        yaml("[p-worker-0, p-worker-1, p-worker-2]"));
  CHECK(world.names("Pod").size() == 4);
  world.patch(kMPIJobKey, yaml("spec: {mpiReplicaSpecs: {Worker: {replicas: 2}}}"));
  world.settle();
  CHECK(world.names("Pod").size() == 3);
  CHECK_FALSE(world.has_event("SuccessfulDeletePod"));  // upstream has none either
  // Additions of other clients do not stay, and are written over only once.
  world.patch("ConfigMap/p-config", yaml("data: {mine: x, hostfile: y}"));
  world.settle();
  CHECK(world.at("ConfigMap/p-config").get("data").find("mine") == nullptr);
  CHECK(data(world, "hostfile") == "p-worker-0 slots=1\np-worker-1 slots=1\n");
  World alone(make_job("MPIJob", "Launcher"));
  CHECK(alone.at("Role/p-launcher").get_array("rules").size() == 1);  // no exec into every pod
  // A suspended job keeps them.
  world.patch(kMPIJobKey, yaml("spec: {runPolicy: {suspend: true}}"));
  world.settle();
  CHECK(world.names("Pod").empty());
  CHECK(world.has("ConfigMap/p-config"));
}

TEST_CASE("a failed pod of an MPIJob stays, and fails the job; under ExitCode it hangs") {
  World world(
      make_job("MPIJob", "Launcher Worker*2", "roles: {Worker: {restartPolicy: OnFailure}}"));
  world.pod("p-worker-1", "Failed", 137);
  CHECK(world.has("Pod/p-worker-1"));
  CHECK(world.message("Failed") ==
        "MPIJobMPIJobFailed: MPIJob p is failed because 1 Worker replica(s) failed.");
  World code(make_job("MPIJob", "Launcher Worker*2", "roles: {Worker: {restartPolicy: ExitCode}}"));
  code.pod("p-worker-1", "Failed", 137);
  CHECK(code.conditions() == "Created Restarting");
  CHECK(code.at("Pod/p-worker-1").get("status").get_string("phase") == "Failed");
  // A worker that is being deleted does not fail it.
  World drained(make_job("MPIJob", "Launcher Worker"));
  drained.is_graceful = true;
  drained.all_pods("Running");
  drained.remove("Pod/p-worker-0");
  drained.settle();
  CHECK(drained.conditions() == "Created Running");
}

TEST_CASE("nothing but the owner is remembered of another owner's object") {
  const V1Job job = read(make_job("MPIJob", "Launcher Worker"));
  const Json foreign = yaml(
      "{metadata: {name: p-config, annotations: {a: b}, ownerReferences: [{kind: X, name: x}]}, "
      "data: {large: text}}");
  CHECK(trim_dependent(job, foreign) ==
        yaml("{metadata: {ownerReferences: [{kind: X, name: x}]}}"));
  Json own = foreign;
  own["metadata"].set(
      "ownerReferences",
      Json::array({Json::object({{"uid", job.metadata.uid}, {"controller", true}})}));
  CHECK(trim_dependent(job, own) == own);
}

TEST_CASE("replicaStatuses have the role Worker, also where the job has none") {
  World world(make_job("MPIJob", "Launcher"));
  CHECK(world.counters("Worker") == "");
  world.pod("p-launcher", "Running");
  CHECK(world.counters("Launcher") == "1 active");
  CHECK(world.counters("Worker") == "");
  CHECK(world.has_event("Normal MPIJobRunning: MPIJob ns/p is running"));
  CHECK(World(make_job("XGBoostJob", "Master")).counters("Worker") == "none");
}

TEST_CASE("evicted pods are named as such") {
  World world(make_job("MPIJob", "Launcher Worker*2"));
  world.objects["Pod/p-worker-1"].set("status", yaml("{phase: Failed, reason: Evicted}"));
  world.settle();
  CHECK(world.has_event("Warning MPIJobEvicted: 1/2 workers are evicted"));
  CHECK(world.message("Failed") ==
        "MPIJobMPIJobFailed: MPIJob p is failed because 1 Worker replica(s) failed.");
  World other(make_job("MPIJob", "Launcher Worker*2"));
  other.pod("p-worker-1", "Failed", 1);
  CHECK_FALSE(other.has_event("MPIJobEvicted"));
  World launcher(make_job("MPIJob", "Launcher Worker"));
  launcher.objects["Pod/p-launcher"].set("status", yaml("{phase: Failed, reason: Evicted}"));
  launcher.settle();
  CHECK(launcher.has_event("Warning Evicted: MPIJob ns/p has failed"));
  CHECK(launcher.has_event(
      "Normal MPIJobFailed: MPIJob p is failed because 1 Launcher replica(s) failed."));
  // A hang under ExitCode is reported once.
  World hanging(
      make_job("MPIJob", "Launcher Worker", "roles: {Launcher: {restartPolicy: ExitCode}}"));
  hanging.pod("p-launcher", "Failed", 137);
  CHECK(hanging.conditions() == "Created Restarting");
  CHECK(hanging.has_event("Warning MPIJobFailed: MPIJob ns/p has failed"));
  CHECK(hanging.reconcile(kMPIJobKey).events.empty());
}

TEST_CASE("what is made of the templates of an MPIJob") {
  World world(make_job(
      "MPIJob", "Launcher Worker",
      "roles: {Worker: {template: {metadata: {finalizers: [a.b/c], annotations: {a: b}}, spec: "
      "{restartPolicy: Always}}}}"));
  const Json& metadata = world.at("Pod/p-worker-0").get("metadata");
  CHECK_FALSE(metadata.find("finalizers"));
  CHECK(metadata.get("annotations") == yaml("{a: b}"));
  CHECK_FALSE(world.has_event("SettedPodTemplateRestartPolicy"));
  World launcher(make_job("MPIJob", "Launcher",
                          "roles: {Launcher: {template: {spec: {restartPolicy: Always}}}}"));
  CHECK(
      launcher.has_event("Warning SettedPodTemplateRestartPolicy: Restart policy in pod template"));
}

TEST_CASE("an MPIJob without roles is refused, and what comes after a foreign object is not made") {
  World empty;
  Json job = make_job("MPIJob", "Launcher");
  job["spec"].set("mpiReplicaSpecs", Json::object());
  empty.apply(std::move(job));
  empty.settle();
  CHECK(
      empty.has_event("Warning MPIJobFailedValidation: MPIJob failed validation because "
                      "spec.mpiReplicaSpecs[Launcher]: Required value"));
  CHECK_FALSE(empty.at(kMPIJobKey).find("status"));
  // No webhook refuses a change. A job that is invalid since then can be suspended, and ends in
  // time.
  for (const char* change : {"activeDeadlineSeconds: 60, cleanPodPolicy: All", "suspend: true"}) {
    INFO(change);
    World edited(make_job("MPIJob", "Launcher Worker*2"));
    edited.all_pods("Running");
    edited.patch(kMPIJobKey, yaml("spec: {mpiReplicaSpecs: {Worker: {replicas: 20000}}}"));
    edited.settle();
    CHECK(edited.names("Pod").size() == 3);
    CHECK(edited.conditions() == "Created Running");
    edited.patch(kMPIJobKey, yaml(fmt::format("spec: {{runPolicy: {{{}}}}}", change)));
    edited.advance(61);
    CHECK(edited.names("Pod").empty());
    CHECK_THAT(edited.conditions(), Catch::StartsWith("Created Running! "));
  }
  World foreign;
  foreign.apply(yaml("{kind: ConfigMap, metadata: {name: p-config}}"));
  foreign.apply(make_job("MPIJob", "Launcher Worker"));
  foreign.settle();
  CHECK(foreign.has("ServiceAccount/p-launcher"));
  CHECK_FALSE(foreign.has("Role/p-launcher"));
  CHECK_FALSE(foreign.has("RoleBinding/p-launcher"));
}
