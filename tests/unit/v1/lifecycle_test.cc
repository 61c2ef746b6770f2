// These accidents of upstream are fixed (docs/decisions/0056): limits, restarts, cleanups and
// failures over the life of a job.
#include <fmt/format.h>

#include "kube/model/resources.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/v1/policies.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

constexpr const char* kJobKey = "PyTorchJob/p";

World limited(int limit, std::string_view policy = "Running") {
  return World(
      make_job("PyTorchJob", "Master Worker",
               fmt::format("runPolicy: {{backoffLimit: {}, cleanPodPolicy: {}}}", limit, policy)));
}

const Json& status(const World& world) {
  return world.at(kJobKey).get("status");
}

}  // namespace

TEST_CASE("backoffLimit: three retries of a container, and its pod is ended, not deleted") {
  for (const char* policy : {"Running", "None"}) {
    World world = limited(3, policy);
    world.pod("p-master-0", "Running");
    for (int restarts = 0; restarts < 3; ++restarts) {
      world.pod("p-worker-0", "Running", 1, restarts);
      CHECK(world.conditions() == "Created Running");
    }
    world.pod("p-worker-0", "Running", 1, 3);
    INFO(policy);
    CHECK(world.conditions() == "Created Running! Failed");
    // The last run fails as well; until then a pod is not changed under None.
    CHECK((world.at("Pod/p-worker-0").get("spec").find("activeDeadlineSeconds") == nullptr) ==
          (policy == std::string("None")));
    Json& container = world.objects["Pod/p-worker-0"]["status"]["containerStatuses"].as_array()[0];
    container.set("state", yaml("{waiting: {reason: CrashLoopBackOff, message: m}}"));
    world.settle();
    CHECK(world.at("Pod/p-worker-0").get("spec").get_int("activeDeadlineSeconds") == 1);
    CHECK(world.has("Service/p-worker-0"));
    CHECK(world.has("Pod/p-master-0") == (policy == std::string("None")));
    CHECK_FALSE(world.has("Pod/p-master-0") != world.has("Service/p-master-0"));
    const int writes = world.writes;
    world.settle();
    CHECK(world.writes == writes);
  }
  World all = limited(0, "All");
  all.pod("p-worker-0", "Running", 1, 1);
  CHECK(all.names("Pod").empty());
}

TEST_CASE("backoffLimit: recreated pods count, and what they had stays counted") {
  World world = limited(3);
  world.pod("p-master-0", "Running");
  world.pod("p-worker-0", "Failed", {}, 0);  // evicted
  CHECK(status(world).get_int("restarts") == 1);
  CHECK_FALSE(status(world).find("restartedPods"));
  world.pod("p-worker-0", "Running", 1, 1);
  CHECK(world.conditions() == "Created Running");
  world.pod("p-worker-0", "Failed", 1, 1);
  CHECK(status(world).get_int("restarts") == 3);
  world.pod("p-worker-0", "Failed");
  CHECK(world.conditions() == "Created Running! Failed");
  CHECK(world.at("Pod/p-worker-0").get("status").get_string("phase") == "Failed");  // readable
  World unlimited(make_job("PyTorchJob", "Master Worker"));
  for (int i = 0; i < 10; ++i) unlimited.pod("p-worker-0", "Failed");
  CHECK_FALSE(status(unlimited).find("restarts"));
  CHECK(unlimited.totals.restarted == 10);
}

TEST_CASE("backoffLimit: with upstream's CRDs recreated pods count as long as the process lives") {
  World world = limited(2);
  world.has_upstreams_crds = true;
  world.pod("p-master-0", "Running");
  for (int i = 0; i < 2; ++i) {
    world.pod("p-worker-0", "Failed", 137);
    CHECK(world.conditions().find("Failed") == std::string::npos);
    CHECK(world.at("Pod/p-worker-0").get("status").get_string("phase") == "Pending");
    const int writes = world.writes;
    world.settle();
    CHECK(world.writes == writes);
  }
  CHECK_FALSE(status(world).find("restarts"));
  // A resumed job begins again.
  for (const char* suspend : {"true", "false"}) {
    world.patch(kJobKey, yaml(fmt::format("{{spec: {{runPolicy: {{suspend: {}}}}}}}", suspend)));
    world.settle();
  }
  for (int i = 0; i < 2; ++i) {
    world.pod("p-worker-0", "Failed", 137);
    CHECK(world.conditions().find("Failed") == std::string::npos);
  }
  world.pod("p-worker-0", "Failed", 137);
  CHECK_THAT(world.message("Failed"), Catch::Contains("reached the specified backoff limit"));
  CHECK(world.at("Pod/p-worker-0").get("status").get_string("phase") == "Failed");  // readable
}

TEST_CASE("backoffLimit: pods that wait and pods that have succeeded count as well") {
  World waiting = limited(3, "All");
  waiting.objects["Pod/p-worker-0"].set(
      "status", yaml("{phase: Pending, initContainerStatuses: [{name: a, restartCount: 3, state: "
                     "{waiting: {reason: CrashLoopBackOff}}}]}"));
  waiting.settle();
  CHECK(waiting.conditions() == "Created Failed");
  World ended = limited(3, "All");
  ended.pod("p-worker-0", "Succeeded", 0, 2);
  CHECK(ended.conditions() == "Created");
  ended.pod("p-master-0", "Running", 1, 1);
  CHECK(ended.conditions() == "Created Failed");
}

// A running pod that is deleted may end with any code.
TEST_CASE("ExitCode: the code of a pod that is being deleted does not count") {
  for (const char* kind : {"PyTorchJob", "PaddleJob", "JAXJob"}) {
    INFO(kind);
    World world(make_job(kind, "Worker*2", "roles: {Worker: {restartPolicy: ExitCode}}"));
    world.is_graceful = true;
    world.pod("p-worker-0", "Running");
    world.pod("p-worker-1", "Running");
    world.remove("Pod/p-worker-1");
    world.pod("p-worker-1", "Failed", 1);
    CHECK(world.conditions() == "Created Restarting");
    world.release("Pod/p-worker-1");
    world.settle();
    CHECK(world.has("Pod/p-worker-1"));
    CHECK(world.conditions() == "Created Running");
  }
}

TEST_CASE("a role that is taken out takes its pods along") {
  World world(make_job("TFJob", "Chief Worker*2"));
  world.all_pods("Running");
  world.patch("TFJob/p", yaml("spec: {tfReplicaSpecs: {Worker: null}}"));
  world.settle();
  CHECK(world.names("Pod") == std::vector<std::string>{"p-chief-0"});
  CHECK(world.names("Service") == std::vector<std::string>{"p", "p-chief-0"});
  CHECK_FALSE(world.at("TFJob/p").get("status").get("replicaStatuses").find("Worker"));
  CHECK(world.conditions() == "Created Running");
}

TEST_CASE("a restart is counted once, also where the controller ends in between") {
  World world = limited(3);
  world.set_pod("p-worker-0", "Failed");
  world.kill_at = world.writes + 1;  // the status is written, the pod is not deleted
  const V1JobPlan made = world.reconcile(kJobKey);
  CHECK(made.is_status_first());
  CHECK(status(world).get_int("restarts") == 1);
  CHECK(status(world).get_array("restartedPods").size() == 1);
  world.kill_at = std::numeric_limits<int>::max();
  world.settle();
  CHECK(status(world).get_int("restarts") == 1);
  CHECK(world.at("Pod/p-worker-0").get("status").get_string("phase") == "Pending");
}

TEST_CASE("pods of a job that ends are not made again") {
  World world = limited(0, "All");
  world.pod("p-master-0", "Running");
  world.set_pod("p-worker-0", "Running", 1, 1);
  const Json before = world.at(kJobKey);
  const V1JobPlan made = world.reconcile(kJobKey);
  CHECK(made.is_status_first());  // Failed is known before the first pod goes
  world.settle();
  CHECK(world.names("Pod").empty());
  // A worker that succeeded and was removed does not run again.
  World done(make_job("PyTorchJob", "Master Worker*2"));
  done.pod("p-master-0", "Running");
  done.pod("p-worker-0", "Succeeded", 0);
  done.remove("Pod/p-worker-0");
  done.settle();
  CHECK_FALSE(done.has("Pod/p-worker-0"));
  CHECK(done.counters("Worker") == "1 succeeded");
  // After a resume it does.
  done.patch(kJobKey, yaml("spec: {runPolicy: {suspend: true}}"));
  done.settle();
  done.patch(kJobKey, yaml("spec: {runPolicy: {suspend: false}}"));
  done.settle();
  CHECK(done.names("Pod").size() == 3);
  CHECK(done.counters("Worker") == "");
}

TEST_CASE("a resumed job waits for the end of the pods of its last run") {
  for (const auto& [kind, roles] :
       std::vector<std::pair<const char*, const char*>>{{"PyTorchJob", "Master Worker*2"},
                                                        {"TFJob", "Chief Worker*2"},
                                                        {"XGBoostJob", "Master Worker*2"},
                                                        {"PaddleJob", "Master Worker*2"},
                                                        {"JAXJob", "Worker*3"},
                                                        {"MPIJob", "Launcher Worker*2"}}) {
    INFO(kind);
    World world(make_job(kind, roles, "roles: {Worker: {restartPolicy: Never}}"));
    world.is_graceful = true;
    const std::string key = std::string(kind) + "/p";
    for (const std::string& pod : world.names("Pod")) world.set_pod(pod, "Running");
    world.settle();
    world.patch(key, yaml("spec: {runPolicy: {suspend: true}}"));
    world.settle();
    const auto old = world.names("Pod");
    CHECK(old.size() == 3);
    world.patch(key, yaml("spec: {runPolicy: {suspend: false}}"));
    world.settle();
    CHECK(world.conditions() == "Created Running! Suspended");
    // A program that is asked to end may end with any code.
    world.set_pod(old[0], "Failed", 143);
    world.settle();
    for (const std::string& pod : old) world.release("Pod/" + pod);
    world.settle();
    CHECK(world.names("Pod") == old);
    CHECK(world.conditions() == "Created Running! Suspended!");
    world.all_pods("Running");
    CHECK_THAT(world.conditions(), Catch::EndsWith("Running"));
  }
}

// Upstream's CRDs drop the budget, so the controller remembers it.
TEST_CASE("a resumed job has a new budget, also where its first pod is refused") {
  for (const bool has_upstreams_crds : {false, true}) {
    INFO(has_upstreams_crds);
    World world = limited(2);
    world.has_upstreams_crds = has_upstreams_crds;
    for (int i = 0; i < 2; ++i) world.pod("p-worker-0", "Failed", 137);
    world.patch(kJobKey, yaml("spec: {runPolicy: {suspend: true}}"));
    world.settle();
    world.patch(kJobKey, yaml("spec: {runPolicy: {suspend: false}}"));
    world.fate = [](const kube::Resource& resource) {
      return resource == kube::kPods ? Fate::kFailed : Fate::kDone;
    };
    world.reconcile(kJobKey);
    world.fate = nullptr;
    world.settle();
    for (int i = 0; i < 2; ++i) world.pod("p-worker-0", "Failed", 137);
    CHECK_THAT(world.conditions(), !Catch::EndsWith("Failed"));
    world.pod("p-worker-0", "Failed", 137);
    CHECK_THAT(world.conditions(), Catch::EndsWith("Failed"));
  }
}

// Without its last running worker the job is complete in the reconcile that sees the new number.
TEST_CASE("what a job was scaled down by goes, also where that ends it") {
  World world(make_job("PyTorchJob", "Worker*2"));
  world.pod("p-worker-0", "Succeeded", 0);
  world.pod("p-worker-1", "Running");
  world.patch(kJobKey, yaml("spec: {pytorchReplicaSpecs: {Worker: {replicas: 1}}}"));
  world.settle();
  CHECK(world.conditions() == "Created Running! Succeeded");
  CHECK(world.counters("Worker") == "1 succeeded");
  CHECK(world.names("Pod") == std::vector<std::string>{"p-worker-0"});
  CHECK(world.names("Service") == std::vector<std::string>{"p-worker-0"});
}

TEST_CASE("replicas 0 neither flaps nor succeeds") {
  World world(make_job("PyTorchJob", "Worker*2"));
  world.objects[kJobKey]["spec"]["pytorchReplicaSpecs"]["Worker"].set("replicas", 0);  // by `scale`
  world.settle();
  CHECK(world.names("Pod").empty());
  CHECK(world.names("Service").empty());
  CHECK(world.conditions() == "Created");
  for (const char* kind : {"TFJob", "PaddleJob", "JAXJob"}) {
    World zero(make_job(kind, "Worker*0"));
    CHECK(zero.conditions() == "Created");
    CHECK(zero.objects.size() == 1);
  }
}

TEST_CASE("Created is never lost") {
  World world;
  Json job = make_job("PyTorchJob", "Worker");
  world.apply(job);
  world.objects[kJobKey].set("status", yaml("{conditions: [{type: Running, status: 'True', reason: "
                                            "PyTorchJobRunning, message: m}], startTime: "
                                            "'2027-01-01T00:00:00Z'}"));
  world.settle();
  CHECK(world.conditions() == "Created Running");
  CHECK(world.totals.created);
}

TEST_CASE("a restart that takes long is written and reported once") {
  World world(make_job("PyTorchJob", "Master Worker*2"));
  world.is_graceful = true;
  world.all_pods("Running");
  world.remove("Pod/p-worker-1");
  world.settle();
  CHECK(world.conditions() == "Created Restarting");
  const int writes = world.writes;
  const std::size_t events = world.events.size();
  for (int i = 0; i < 5; ++i) world.advance(10);
  CHECK(world.writes == writes);
  CHECK(world.events.size() == events);
  world.release("Pod/p-worker-1");
  world.settle();
  CHECK(world.conditions() == "Created Running");
}

TEST_CASE("the first failure is kept") {
  World world(make_job("PyTorchJob", "Master Worker*2"));
  world.pod("p-worker-1", "Failed", 137);
  const Json first = status(world).get("firstFailure");
  CHECK(first.get_string("pod") == "p-worker-1");
  CHECK(first.get_string("job") == "worker");
  CHECK(first.get_int("index") == 1);
  CHECK(first.get_int("exitCode") == 137);
  world.now = world.now + std::chrono::minutes(10);
  world.pod("p-worker-0", "Failed", 1);  // a consequence
  CHECK(status(world).get("firstFailure") == first);
  world.now = world.now + std::chrono::hours(1);
  world.pod("p-worker-0", "Failed", 2);  // another incident
  CHECK(status(world).get("firstFailure").get_int("exitCode") == 2);
}

TEST_CASE("troubles of pods are reported once each") {
  World world(make_job("PyTorchJob", "Worker"));
  world.objects["Pod/p-worker-0"].set(
      "status",
      yaml("{phase: Pending, containerStatuses: [{name: pytorch, state: {waiting: {reason: "
           "ImagePullBackOff, message: no such image}}}]}"));
  world.settle();
  CHECK(
      world.has_event("PyTorchJob p: Warning ImagePullBackOff: Error pod p-worker-0 container "
                      "pytorch waiting message: no such image"));
  const std::size_t events = world.events.size();
  world.settle();
  CHECK(world.events.size() == events);
}

TEST_CASE("jobs that upstream made are taken over without a write to their pods") {
  World world(make_job("PyTorchJob", "Master Worker*2"));
  world.all_pods("Running");
  // Another process sees it for the first time.
  World other;
  other.objects = world.objects;
  other.settle();
  CHECK(other.writes == 0);
}

TEST_CASE("what a job was scaled down by does not outlive its end") {
  for (const bool has_autoscaler : {false, true}) {
    INFO(has_autoscaler);
    World world(make_job("PyTorchJob", "Master Worker*3",
                         has_autoscaler ? "elasticPolicy: {maxReplicas: 3, metrics: []}" : ""));
    world.all_pods("Running");
    world.patch(kJobKey, yaml("spec: {pytorchReplicaSpecs: {Worker: {replicas: 1}}}"));
    world.set_pod("p-master-0", "Succeeded", 0);
    world.set_pod("p-worker-1", "Succeeded", 0);
    world.kill_at = world.writes + 1;  // the status is written, no pod is deleted
    world.reconcile(kJobKey);
    CHECK(world.conditions() == "Created Running! Succeeded");
    world.kill_at = std::numeric_limits<int>::max();
    world.settle();
    CHECK(world.has("Pod/p-worker-0"));  // cleanPodPolicy None
    CHECK(world.has("Pod/p-worker-1"));  // ended, and so readable
    CHECK(world.has("Pod/p-worker-2") == has_autoscaler);
  }
}

TEST_CASE("a pod that never restarts fails a TFJob, also while others restart") {
  World world(
      make_job("TFJob", "Chief Worker*2",
               "roles: {Chief: {restartPolicy: Never}, Worker: {restartPolicy: OnFailure}}"));
  world.pod("p-worker-0", "Failed", 1);
  CHECK(world.conditions() == "Created Restarting");
  world.pod("p-chief-0", "Failed", 1);
  CHECK(world.conditions() == "Created Restarting Failed");
}

TEST_CASE("a condition of the same status keeps its time, also with another reason") {
  JobStatus status;
  const auto set = [&status](bool is_true, const char* reason, std::int64_t seconds) {
    JobCondition condition;
    condition.type = "Running";
    condition.status = is_true ? "True" : "False";
    condition.reason = reason;
    condition.lastTransitionTime = kube::Time::from_seconds(seconds);
    return set_condition(status, condition);
  };
  CHECK(set(true, "First", 1'000));
  CHECK_FALSE(set(true, "First", 2'000));
  CHECK(set(true, "Second", 3'000));
  REQUIRE(status.find("Running"));
  CHECK(status.find("Running")->reason == "Second");
  CHECK(status.find("Running")->lastTransitionTime == kube::Time::from_seconds(1'000));
  CHECK(set(false, "Second", 4'000));
  CHECK(status.find("Running")->lastTransitionTime == kube::Time::from_seconds(4'000));
}
