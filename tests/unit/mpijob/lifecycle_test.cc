// An MPIJob of v2beta1 begins, runs and ends.
#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"
#include "tests/unit/mpijob/mpijob_world.hh"

using namespace trainer;
using namespace trainer::mpijob;
using namespace trainer::mpijob::test;

TEST_CASE("an MPIJob gets its objects, runs once all pods do, and succeeds with its launcher") {
  MPIJobWorld world;
  for (const char* key : {"Service/m", "ConfigMap/m-config", "Secret/m-ssh", "Job/m-launcher"})
    CHECK(world.has(key));
  CHECK(world.pods() == "m-worker-0 m-worker-1");
  CHECK(world.conditions() == "Created");
  CHECK(world.has_event("Normal MPIJobCreated: MPIJob ns/m is created."));
  world.workers("Running");
  CHECK(world.counters("Worker") == "2 active");
  CHECK(world.conditions() == "Created");
  world.launcher_pod("m-launcher-x", "Running");
  CHECK(world.conditions() == "Created Running");
  CHECK(world.counters("Launcher") == "1 active");
  CHECK(world.has_event("Normal MPIJobRunning: MPIJob ns/m is running"));
  world.pod("m-launcher-x", "Succeeded");
  world.launcher_ends("Complete");
  CHECK(world.conditions() == "Created Running! Succeeded");
  CHECK(world.counters("Launcher") == "1 succeeded");
  CHECK(world.counters("Worker").empty());
  CHECK(world.pods() == "m-launcher-x m-worker-0 m-worker-1");  // cleanPodPolicy None
  CHECK_FALSE(world.at("MPIJob/m").get("status").get_string("completionTime").empty());
}

TEST_CASE("a finished MPIJob's workers are removed by cleanPodPolicy, also if that is set later") {
  const auto left = [](std::string_view policy) {
    MPIJobWorld world;
    world.workers("Running");
    world.pod("m-worker-1", "Failed");
    world.launcher_pod("m-launcher-x", "Succeeded");
    world.launcher_ends("Complete");
    world.change("spec: {runPolicy: {cleanPodPolicy: " + std::string(policy) + "}}");
    CHECK(world.has("Job/m-launcher"));
    return world.pods();
  };
  CHECK(left("None") == "m-launcher-x m-worker-0 m-worker-1");
  CHECK(left("Running") == "m-launcher-x m-worker-1");
  CHECK(left("All") == "m-launcher-x");
}

TEST_CASE("the failure of an MPIJob is its launcher's Job's, with the last pod's reason") {
  MPIJobWorld world;
  world.launcher_pod("m-launcher-z", "Failed", "Evicted", "low on memory");
  world.now = world.now.after(60);
  world.launcher_pod("m-launcher-a", "Failed", "OOMKilled", "out of memory");
  world.objects.at("Job/m-launcher")["status"].set("failed", 2);
  world.settle();
  CHECK(world.conditions() == "Created");
  CHECK(world.counters("Launcher") == "2 failed");
  world.launcher_ends("Failed", "BackoffLimitExceeded", "too many");
  CHECK(world.conditions() == "Created Failed Running!");
  const auto& failed = world.at("MPIJob/m").get("status").get_array("conditions")[1];
  CHECK(failed.get_string("reason") == "BackoffLimitExceeded/OOMKilled");
  CHECK(failed.get_string("message") == "too many: out of memory");
  CHECK(world.has_event("Warning BackoffLimitExceeded/OOMKilled: too many: out of memory"));

  MPIJobWorld late;
  late.launcher_ends("Failed", "DeadlineExceeded", "too long");
  CHECK(late.has_event("Warning DeadlineExceeded: too long"));
  MPIJobWorld silent;
  silent.launcher_ends("Failed");
  CHECK(silent.has_event("Warning MPIJobFailed: MPIJob ns/m has failed"));
}

TEST_CASE("an evicted worker makes an MPIJob Failed until its launcher succeeds") {
  MPIJobWorld world;
  world.workers("Running");
  world.launcher_pod("m-launcher-x", "Running");
  world.pod("m-worker-0", "Failed", "Evicted");
  CHECK(world.conditions() == "Created Running! Failed");
  CHECK(world.has_event("Warning MPIJobEvicted: 1/2 workers are evicted"));
  CHECK(world.at("MPIJob/m").get("status").get_string("completionTime").empty());
  world.objects.erase("Pod/m-worker-0");
  world.settle();
  CHECK(world.has("Pod/m-worker-0"));
  world.pod("m-worker-0", "Running");
  CHECK(world.conditions() == "Created Running! Failed");
  world.launcher_ends("Complete");
  CHECK(world.conditions() == "Created Running! Failed! Succeeded");
}

TEST_CASE("a worker that fails is neither replaced nor a failure of its MPIJob") {
  MPIJobWorld world;
  world.workers("Running");
  world.launcher_pod("m-launcher-x", "Running");
  world.pod("m-worker-0", "Failed");
  CHECK(world.conditions() == "Created Running");
  CHECK(world.counters("Worker") == "1 active 1 failed");
  CHECK(world.at("Pod/m-worker-0").get("status").get_string("phase") == "Failed");
}

TEST_CASE("an MPIJob is suspended and resumed with what a queue has changed") {
  MPIJobWorld world(make_mpijob("spec: {runPolicy: {suspend: true}}"));
  CHECK(world.pods().empty());
  CHECK(world.at("Job/m-launcher").get("spec").get_bool("suspend"));
  CHECK(world.conditions() == "Created Suspended Running!");
  CHECK(world.at("MPIJob/m").get("status").get_string("startTime").empty());
  world.objects.at("Job/m-launcher")["status"].set("startTime", "2026-01-01T00:00:00Z");
  world.objects.at("Job/m-launcher")["spec"]["template"]["metadata"]["labels"].set("old", "1");
  world.change(
      "spec: {runPolicy: {suspend: false}, mpiReplicaSpecs: {Launcher: {template: {metadata: "
      "{labels: {new: '2'}}, spec: {nodeSelector: {pool: a}}}}}}");
  const auto& job = world.at("Job/m-launcher");
  CHECK_FALSE(job.get("spec").get_bool("suspend"));
  CHECK(job.get("status").find("startTime") == nullptr);
  CHECK(job.get("spec").get("template").get("spec").get("nodeSelector").get_string("pool") == "a");
  const auto& labels = job.get("spec").get("template").get("metadata").get("labels");
  CHECK(labels.get_string("old") == "1");
  CHECK(labels.get_string("new") == "2");
  CHECK(world.conditions() == "Created Running! Suspended!");
  CHECK(world.has_event("Normal MPIJobResumed: MPIJob resumed"));
  CHECK_FALSE(world.at("MPIJob/m").get("status").get_string("startTime").empty());

  world.workers("Running");
  world.change("spec: {runPolicy: {suspend: true}}");
  CHECK(world.pods().empty());
  CHECK(world.counters("Worker").empty());
  CHECK(world.conditions() == "Created Running! Suspended");
  // A node selector that the queue takes away again leaves the Job, too.
  world.change(
      "spec: {runPolicy: {suspend: false}, mpiReplicaSpecs: {Launcher: {template: {spec: "
      "{nodeSelector: null}}}}}");
  CHECK(world.at("Job/m-launcher").get("spec").get("template").get("spec").find("nodeSelector") ==
        nullptr);
}

TEST_CASE("with cleanPodPolicy Running a suspended MPIJob keeps pods that have ended") {
  MPIJobWorld world(make_mpijob("spec: {runPolicy: {cleanPodPolicy: Running}}"));
  world.pod("m-worker-0", "Failed");
  world.change("spec: {runPolicy: {suspend: true}}");
  CHECK(world.pods() == "m-worker-0");
}

TEST_CASE("a launcher that waits for workers starts once all of them are ready") {
  MPIJobWorld world(make_mpijob("spec: {launcherCreationPolicy: WaitForWorkersReady}"));
  CHECK_FALSE(world.has("Job/m-launcher"));
  world.pod("m-worker-0", "Running");
  CHECK_FALSE(world.has("Job/m-launcher"));
  world.pod("m-worker-1", "Running");
  CHECK(world.has("Job/m-launcher"));
  MPIJobWorld alone(make_mpijob(
      "spec: {launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Worker: null}}"));
  CHECK(alone.has("Job/m-launcher"));
}

TEST_CASE("an MPIJob is scaled while it runs, and its hosts follow") {
  MPIJobWorld world;
  world.workers("Running");
  world.change("spec: {slotsPerWorker: 5, mpiReplicaSpecs: {Worker: {replicas: 3}}}");
  CHECK(world.pods() == "m-worker-0 m-worker-1 m-worker-2");
  world.change("spec: {mpiReplicaSpecs: {Worker: {replicas: 1}}}");
  CHECK(world.pods() == "m-worker-0");
  const auto& data = world.at("ConfigMap/m-config").get("data");
  CHECK(data.get_string("hostfile") == "m-worker-0.m.ns.svc slots=5\n");
  CHECK(data.get_string("discover_hosts.sh") == "#!/bin/sh\necho m-worker-0.m.ns.svc\n");
}

TEST_CASE("what is deleted or changed comes back while the launcher has not ended") {
  MPIJobWorld world;
  world.objects.erase("Service/m");
  world.objects.erase("Job/m-launcher");
  world.objects.at("ConfigMap/m-config")["data"].set("more", "x");
  world.objects.at("Secret/m-ssh")["data"].set("more", true);
  world.settle();
  CHECK(world.has("Service/m"));
  CHECK(world.has("Job/m-launcher"));
  CHECK(world.at("ConfigMap/m-config").get("data").find("more") == nullptr);
  world.objects.at("Service/m")["spec"]["selector"].set("x", "y");
  world.settle();
  CHECK(world.at("Service/m").get("spec").get("selector").find("x") == nullptr);
  world.launcher_ends("Complete");
  world.objects.erase("Service/m");
  world.settle();
  CHECK_FALSE(world.has("Service/m"));
}

TEST_CASE("a new key pair is asked for where the Secret lacks a key") {
  MPIJobWorld world;
  world.objects.at("Secret/m-ssh")["data"].erase("ssh-publickey");
  world.objects.at("Secret/m-ssh")["data"].set("other", true);
  const MPIJobPlan made = world.reconcile();
  REQUIRE(made.ssh_key_actions.size() == 1);
  const kube::Action& action = made.actions.at(made.ssh_key_actions.front());
  CHECK(action.resource.kind == "Secret");
  CHECK(action.body.get("data").find("other")->is_null());
}

TEST_CASE("an MPIJob of another manager, or one that is being deleted, is left alone") {
  CHECK(MPIJobWorld(make_mpijob("spec: {runPolicy: {managedBy: example.com/x}}")).writes == 0);
  CHECK(MPIJobWorld(make_mpijob("spec: {runPolicy: {managedBy: ''}}")).writes == 0);
  CHECK(MPIJobWorld(make_mpijob("metadata: {deletionTimestamp: '2026-11-01T00:00:00Z'}")).writes ==
        0);
  CHECK(MPIJobWorld(make_mpijob("spec: {runPolicy: {managedBy: kubeflow.org/mpi-operator}}"))
            .has("Job/m-launcher"));
}

TEST_CASE("an object in the way of an MPIJob is named in an event and a condition") {
  MPIJobWorld world;
  world.objects.erase("Pod/m-worker-1");
  world.refusal =
      kube::Refusal{kube::kPods, "it exists", kube::ErrorCode::kAlreadyExists, "m-worker-1"};
  const MPIJobPlan made = world.reconcile();
  CHECK(
      world.has_event("Warning ErrResourceExists: Resource \"m-worker-1\" of Kind \"Pod\" already "
                      "exists and is not managed by MPIJob"));
  CHECK(world.conditions() == "ReplicaFailure Created");
  CHECK(made.due_after == std::chrono::seconds(10));
  world.refusal = kube::Refusal{kube::kPods, "exceeded quota", kube::ErrorCode::kForbidden, "x"};
  world.reconcile();
  CHECK(world.has_event("Warning MPIJobFailed: worker pod created failed: exceeded quota"));
  world.refusal.reset();
  world.settle();
  CHECK(world.conditions() == "Created");
}

TEST_CASE("the facts for metrics follow from the status of an MPIJob") {
  const auto facts = [](MPIJobWorld& world) {
    const auto job = v1::read_job(world.at("MPIJob/m"), kReplicaSpecs);
    const JobFacts found = facts_of(*job);
    return std::string(found.phase) + " " + std::string(found.failure);
  };
  MPIJobWorld world;
  CHECK(facts(world) == "Pending ");
  world.workers("Running");
  world.launcher_pod("m-launcher-x", "Running");
  CHECK(facts(world) == "Running ");
  world.change("spec: {runPolicy: {suspend: true}}");
  CHECK(facts(world) == "Suspended ");
  MPIJobWorld late;
  late.launcher_ends("Failed", "DeadlineExceeded", "too long");
  CHECK(facts(late) == "Failed DeadlineExceeded");
  MPIJobWorld other;
  other.launcher_ends("Failed", "PodFailurePolicy", "no");
  CHECK(facts(other) == "Failed PodsFailed");
  MPIJobWorld done;
  done.launcher_ends("Complete");
  CHECK(facts(done) == "Complete ");
}
