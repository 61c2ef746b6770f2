// These are rows CO1 to CO27 of the acceptance checklist, except those of gang_test.cc (CO13).
#include <fmt/format.h>

#include <limits>

#include "kube/model/resources.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/v1/policies.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

using Names = std::vector<std::string>;

// A master that runs, and workers that run, wait and have succeeded.
World mixed(std::string_view policy, std::string_view more = {}) {
  World world(make_job("PyTorchJob", "Master Worker*3",
                       fmt::format("runPolicy: {{cleanPodPolicy: {}{}}}", policy, more)));
  world.pod("p-master-0", "Running");
  world.pod("p-worker-0", "Running");
  world.pod("p-worker-2", "Succeeded");
  return world;
}

}  // namespace

TEST_CASE("CO1, CO2, CO3: pods and Services of a finished job by cleanPodPolicy") {
  const Names all{"p-master-0", "p-worker-0", "p-worker-1", "p-worker-2"};
  for (const auto& [policy, left] : std::vector<std::pair<const char*, Names>>{
           {"Running", {"p-master-0", "p-worker-2"}}, {"All", {}}, {"None", all}, {"Odd", {}}}) {
    INFO(policy);
    World world = mixed(policy);
    world.pod("p-master-0", "Succeeded");
    CHECK(world.conditions() == "Created Running! Succeeded");
    CHECK(world.names("Pod") == left);
    Names services = left;
    if (policy == std::string("None")) services.insert(services.begin(), "p");  // one pod runs
    CHECK(world.names("Service") == services);
    CHECK(world.counters("Worker") == "2 succeeded");  // pods that ran count as succeeded
    CHECK(world.totals.succeeded);
  }
}

// The job is scaled by the subresource scale, which no webhook sees.
TEST_CASE("a job that was scaled beyond all bounds gets no pod more, and can be stopped") {
  World world(make_job("PyTorchJob", "Worker*2", "runPolicy: {backoffLimit: 3}"));
  world.all_pods("Running");
  Json& replicas = world.objects["PyTorchJob/p"]["spec"]["pytorchReplicaSpecs"]["Worker"];
  replicas.set("replicas", 2147483647);
  world.settle();
  CHECK(world.names("Pod") == Names{"p-worker-0", "p-worker-1"});
  CHECK(
      world.has_event("PyTorchJobFailedValidation: PyTorchJob failed validation because "
                      "spec.pytorchReplicaSpecs: Invalid value: 2147483647"));
  const int writes = world.writes;
  world.settle();
  CHECK(world.writes == writes);
  world.objects["PyTorchJob/p"]["spec"]["runPolicy"].set("suspend", true);
  world.settle();
  CHECK(world.names("Pod").empty());
}

TEST_CASE("pods that name all others are created some at a time, and all in the end") {
  constexpr std::size_t workers = 1'000;
  World world;
  REQUIRE(world.apply(make_job("TFJob", fmt::format("Worker*{}", workers))) == 201);
  const V1JobPlan first = world.reconcile("TFJob/p");
  CHECK(world.names("Pod").size() > 100);
  CHECK(world.names("Pod").size() < 300);  // each names all others
  CHECK(first.requeue_after == std::chrono::milliseconds(0));
  world.settle();
  CHECK(world.names("Pod").size() == workers);
  CHECK(world.names("Service").size() == workers + 1);
}

TEST_CASE("CO4, CO5: a suspended job keeps nothing, whatever the policy") {
  for (const char* policy : {"Running", "None"}) {
    World world = mixed(policy);
    world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: true}}"));
    world.settle();
    CHECK(world.names("Pod").empty());
    CHECK(world.names("Service").empty());
  }
}

TEST_CASE("CO6: a job that passes its limits is cleaned up as any other (1.9.4)") {
  for (const auto& [policy, left] :
       std::vector<std::pair<const char*, std::size_t>>{{"None", 4}, {"All", 0}, {"Running", 1}}) {
    World world = mixed(policy, ", activeDeadlineSeconds: 5");
    world.advance(5);
    INFO(policy);
    CHECK(world.conditions() == "Created Running! Failed");
    CHECK(
        world.message("Failed") ==
        "PyTorchJobFailed: Job p has failed because it was active longer than specified deadline");
    CHECK(world.names("Pod").size() == left);
    CHECK(world.counters("Worker") == "1 active 1 succeeded");  // the former counters
    world.settle();
    CHECK(world.names("Pod").size() == left);
  }
}

TEST_CASE("CO7, CO8: backoffLimit counts restarts of containers") {
  for (const auto& [limit, restarts, fails] : std::vector<std::tuple<int, int, bool>>{
           {0, 0, false}, {0, 1, true}, {3, 2, false}, {3, 3, true}, {3, 4, true}}) {
    World world(make_job("PyTorchJob", "Master Worker",
                         fmt::format("runPolicy: {{backoffLimit: {}}}", limit)));
    world.pod("p-worker-0", "Running", {}, restarts);
    INFO(limit << " " << restarts);
    CHECK((world.conditions() == "Created Failed") == fails);
    if (fails)
      CHECK(
          world.message("Failed") ==
          "PyTorchJobFailed: Job p has failed because it has reached the specified backoff limit");
  }
}

TEST_CASE("backoffLimit 0: any failed pod ends the job, also under a policy without retries") {
  for (const auto& [policy, code] : std::vector<std::pair<const char*, int>>{
           {"Never", 1}, {"OnFailure", 1}, {"Always", 1}, {"ExitCode", 1}, {"ExitCode", 137}})
    for (const auto& [kind, roles, prefix] :
         std::vector<std::tuple<const char*, const char*, const char*>>{
             {"PyTorchJob", "Master Worker", "PyTorchJob"},
             {"TFJob", "Chief Worker", "TFJob"},
             {"XGBoostJob", "Master Worker", "XGBoostJob"},
             {"MPIJob", "Launcher Worker", "MPIJob"}}) {
      World world(make_job(kind, roles,
                           fmt::format("{{runPolicy: {{backoffLimit: 0}}, roles: {{Worker: "
                                       "{{restartPolicy: {}}}}}}}",
                                       policy)));
      world.pod("p-worker-0", "Failed", code);
      INFO(kind << " " << policy << " " << code);
      CHECK(world.conditions() == "Created Failed");
      CHECK(world.message("Failed") ==
            fmt::format(
                "{}Failed: Job p has failed because it has reached the specified backoff limit",
                prefix));
      CHECK(world.counters("Worker") == "");  // the former counters
      CHECK(world.has("Pod/p-worker-0"));
    }
}

TEST_CASE("CO9: activeDeadlineSeconds, on time by itself") {
  World past(make_job("PyTorchJob", "Worker", "runPolicy: {activeDeadlineSeconds: 0}"));
  CHECK(past.conditions() == "Created Failed");
  World world(make_job("PyTorchJob", "Worker", "runPolicy: {activeDeadlineSeconds: 2}"));
  CHECK(world.conditions() == "Created");
  CHECK(world.reconcile("PyTorchJob/p").requeue_after == std::chrono::milliseconds(2000));
  world.advance(1);
  CHECK(world.conditions() == "Created");
  CHECK(world.reconcile("PyTorchJob/p").requeue_after == std::chrono::milliseconds(1000));
  world.advance(1);
  CHECK(world.conditions() == "Created Failed");
}

TEST_CASE("a deadline that is longer than any job never comes") {
  for (const std::int64_t seconds :
       {10'000'000'000, 10'000'000'000'000, std::numeric_limits<std::int64_t>::max()}) {
    INFO(seconds);
    World world(make_job("PyTorchJob", "Worker",
                         fmt::format("runPolicy: {{activeDeadlineSeconds: {}}}", seconds)));
    CHECK(world.conditions() == "Created");
    CHECK(world.reconcile("PyTorchJob/p").requeue_after > std::chrono::hours(24));
  }
}

TEST_CASE("what one reconcile makes is bounded, however large the template is") {
  Json job = make_job("TFJob", "Worker*1000");
  Json& worker = job["spec"]["tfReplicaSpecs"]["Worker"];
  worker["template"]["metadata"] = yaml("{annotations: {}}");
  worker["template"]["metadata"]["annotations"].set("a",
                                                    std::string(1'000'000, static_cast<char>('x')));
  World world;
  REQUIRE(world.apply(job) == 201);
  const V1JobPlan plan = world.reconcile("TFJob/p");
  CHECK(plan.requeue_after == std::chrono::milliseconds(0));
  CHECK(plan.actions.size() > 1);
  CHECK(plan.actions.size() < 20);
}

TEST_CASE("more containers than any pod has are refused, and no pod is made of them") {
  const auto with = [](std::string_view roles, int containers) {
    Json job = make_job("XGBoostJob", roles);
    Json& list = job["spec"]["xgbReplicaSpecs"]["Worker"]["template"]["spec"]["containers"];
    for (int i = 1; i < containers; ++i)
      list.push_back(Json::object({{"name", fmt::format("c{}", i)}, {"image", "i"}}));
    return job;
  };
  CHECK(World().apply(with("Master Worker*99", 1'000)) == 201);
  World world;
  CHECK(world.apply(with("Master Worker", 1'001)) == 403);
  CHECK(world.apply(with("Master Worker*9999", 101)) == 403);
  // Stored before there was a webhook.
  world.objects["XGBoostJob/p"] = with("Master Worker*9999", 101);
  world.objects["XGBoostJob/p"]["metadata"].set("namespace", "ns");
  world.settle();
  CHECK(world.names("Pod").empty());
  CHECK(world.has_event(
      "XGBoostJobFailedValidation: XGBoostJob failed validation because "
      "spec.xgbReplicaSpecs[Worker].template.spec.containers: Invalid value: 101: containers: at "
      "most 100 are possible"));
}

TEST_CASE("of roles whose names differ in case only, one counts") {
  World world(make_job("TFJob", "Worker WORKER*2 worker extra*2 EXTRA*3 Extra"));
  CHECK(world.names("Pod") ==
        Names{"p-extra-0", "p-extra-1", "p-extra-2", "p-worker-0", "p-worker-1"});
  CHECK(world.reconcile("TFJob/p").actions.empty());
}

TEST_CASE("CO10: whose job it is") {
  for (const auto& [value, is_own] :
       std::vector<std::pair<const char*, bool>>{{"null", true},
                                                 {"''", false},
                                                 {"kubeflow.org/training-operator", true},
                                                 {"kueue.x-k8s.io/multikueue", false},
                                                 {"other", false}}) {
    World world;
    Json job = make_job("PyTorchJob", "Worker", fmt::format("runPolicy: {{managedBy: {}}}", value));
    job["metadata"].set("namespace", "ns");
    world.objects["PyTorchJob/p"] = job;  // past admission
    world.settle();
    CHECK((world.writes > 0) == is_own);
  }
}

TEST_CASE("CO11: counters by phase; a running pod that is being deleted counts as failed") {
  World world(make_job("PaddleJob", "Worker*6"));
  world.is_graceful = true;
  world.pod("p-worker-0", "Running");
  world.pod("p-worker-1", "Succeeded");
  world.pod("p-worker-2", "Running");
  CHECK(world.counters("Worker") == "2 active 1 succeeded");
  world.remove("Pod/p-worker-2");
  world.settle();
  CHECK(world.counters("Worker") == "1 active 1 succeeded 1 failed");
  CHECK(world.conditions() == "Created Restarting");
  world.release("Pod/p-worker-2");
  world.settle();
  CHECK(world.has("Pod/p-worker-2"));
  CHECK(world.counters("Worker") == "1 active 1 succeeded");
}

TEST_CASE("CO12, T15: restart policies of pods") {
  for (const auto& [policy, of_pod] :
       std::vector<std::pair<const char*, const char*>>{{"ExitCode", "Never"},
                                                        {"Never", "Never"},
                                                        {"Always", "Always"},
                                                        {"OnFailure", "OnFailure"}}) {
    World world(make_job("TFJob", "Worker",
                         fmt::format("roles: {{Worker: {{restartPolicy: {}, template: {{spec: "
                                     "{{restartPolicy: Always}}}}}}}}",
                                     policy)));
    CHECK(world.at("Pod/p-worker-0").get("spec").get_string("restartPolicy") == of_pod);
    CHECK(world.has_event("Warning SetPodTemplateRestartPolicy: Restart policy in pod template "));
  }
}

TEST_CASE("CO14, CO15, T18: gaps are filled, and surplus goes; a stray pod stays") {
  World world(make_job("TFJob", "PS Worker*4"));
  Json stray = world.at("Pod/p-worker-1");
  stray["metadata"].set("name", "stray");
  stray["metadata"]["labels"].erase("training.kubeflow.org/replica-type");
  world.objects["Pod/stray"] = stray;
  world.remove("Pod/p-worker-1");
  world.remove("Service/p-worker-2");
  world.settle();
  CHECK(world.names("Service").size() == 6);
  CHECK(world.names("Pod").size() == 6);
  world.patch("TFJob/p", yaml("spec: {tfReplicaSpecs: {Worker: {replicas: 1}}}"));
  world.settle();
  CHECK(world.names("Pod") == Names{"p-ps-0", "p-worker-0", "stray"});
  CHECK(world.names("Service") == Names{"p", "p-ps-0", "p-worker-0"});
  world.patch("TFJob/p", yaml("spec: {tfReplicaSpecs: {Worker: {replicas: 2}}}"));
  world.settle();
  CHECK(world.has("Pod/p-worker-1"));
}

TEST_CASE("CO16: names") {
  CHECK(pod_name("p", framework_of("TFJob"), "PS", 3) == "p-ps-3");
  CHECK(pod_name("p", framework_of("MPIJob"), "Launcher", 0) == "p-launcher");
  CHECK(pod_name("p", framework_of("MPIJob"), "Worker", 1) == "p-worker-1");
}

TEST_CASE("CO17, CO18: the order of conditions") {
  JobStatus status;
  const auto set = [&status](std::string_view type, std::string_view reason, bool value = true) {
    JobCondition condition;
    condition.type = type;
    condition.status = value ? "True" : "False";
    condition.reason = reason;
    return set_condition(status, condition);
  };
  const auto seen = [&status] {
    std::string text;
    for (const JobCondition& one : status.conditions)
      text += (text.empty() ? "" : " ") + one.type + (one.is_true() ? "" : "!");
    return text;
  };
  CHECK(set("Created", "a"));
  CHECK(set("Running", "b"));
  CHECK_FALSE(set("Running", "b"));
  CHECK(seen() == "Created Running");
  CHECK(set("Restarting", "c"));
  CHECK(seen() == "Created Restarting");
  CHECK(set("Running", "b"));
  CHECK(seen() == "Created Running");
  CHECK(set("Suspended", "d"));
  CHECK(status.is_true("Suspended"));
  CHECK(set("Suspended", "e", false));
  CHECK_FALSE(status.is_true("Suspended"));
  CHECK(set("Failed", "f"));
  CHECK(seen() == "Created Running! Suspended! Failed");
  CHECK_FALSE(set("Succeeded", "g"));  // a failed job stays failed
  CHECK(seen() == "Created Running! Suspended! Failed");
}

TEST_CASE("CO19: exit codes that restart a pod") {
  for (const auto& [code, retried] : std::vector<std::pair<int, bool>>{
           {1, false}, {127, false}, {128, true}, {130, true}, {139, true}, {255, true}})
    CHECK(is_retryable(code) == retried);
}

TEST_CASE("CO20: suspended or not") {
  for (const auto& [more, is] :
       std::vector<std::pair<const char*, bool>>{{"", false},
                                                 {"runPolicy: {}", false},
                                                 {"runPolicy: {suspend: false}", false},
                                                 {"runPolicy: {suspend: true}", true}})
    CHECK(read(make_job("TFJob", "Worker", more)).is_suspended() == is);
}

TEST_CASE("CO21, CO22, CO23, T9, T10: ttlSecondsAfterFinished") {
  for (const char* phase : {"Succeeded", "Failed"}) {
    World world(make_job("TFJob", "Worker", "runPolicy: {ttlSecondsAfterFinished: 3}"));
    CHECK_FALSE(world.reconcile("TFJob/p").requeue_after);
    world.pod("p-worker-0", phase, phase == std::string("Failed") ? 1 : 0);
    CHECK(world.reconcile("TFJob/p").requeue_after == std::chrono::milliseconds(3000));
    world.advance(2);
    CHECK(world.has("TFJob/p"));
    CHECK(world.reconcile("TFJob/p").requeue_after == std::chrono::milliseconds(1000));
    world.advance(1);
    CHECK_FALSE(world.has("TFJob/p"));
    CHECK(world.names("Pod").empty());
    CHECK(world.totals.deleted);
    CHECK(world.has_event("Normal SuccessfulDeleteJob: Deleted job: p"));
  }
  World at_once(make_job("PyTorchJob", "Worker", "runPolicy: {ttlSecondsAfterFinished: 0}"));
  at_once.pod("p-worker-0", "Succeeded");
  CHECK_FALSE(at_once.has("PyTorchJob/p"));
  CHECK(at_once.has_event("Normal SuccessfulDeletePod: Deleted job: p"));
  World kept(make_job("TFJob", "Worker"));
  kept.pod("p-worker-0", "Succeeded");
  kept.advance(1'000'000);
  CHECK(kept.has("TFJob/p"));
  World suspended(
      make_job("TFJob", "Worker", "runPolicy: {ttlSecondsAfterFinished: 0, suspend: true}"));
  suspended.advance(10);
  CHECK(suspended.has("TFJob/p"));
}

TEST_CASE(
    "CO23: a job that failed by its exit code has no completionTime, and expires all the same") {
  World world(make_job("PyTorchJob", "Worker",
                       "{runPolicy: {ttlSecondsAfterFinished: 5}, roles: "
                       "{Worker: {restartPolicy: ExitCode}}}"));
  world.pod("p-worker-0", "Failed", 1);
  CHECK_FALSE(world.at("PyTorchJob/p").get("status").find("completionTime"));
  world.advance(5);
  CHECK_FALSE(world.has("PyTorchJob/p"));
}

TEST_CASE("CO24, CO25: pods of others are not touched") {
  World world(make_job("PyTorchJob", "Worker"));
  Json other = world.at("Pod/p-worker-0");
  other["metadata"].set("name", "p-worker-7");
  other["metadata"]["ownerReferences"].as_array().front().set("uid", "another");
  world.objects["Pod/p-worker-7"] = other;
  world.settle();
  CHECK(world.has("Pod/p-worker-7"));
  // A job that is being deleted does nothing.
  world.objects["PyTorchJob/p"]["metadata"].set("deletionTimestamp", world.now.to_string());
  world.release("Pod/p-worker-0");
  world.settle();
  CHECK_FALSE(world.has("Pod/p-worker-0"));
}

TEST_CASE("CO26, T5, T21: metadata of pods and Services") {
  World world(
      make_job("TFJob", "Worker*2",
               "roles: {Worker: {template: {metadata: {name: mine, labels: {team: a, "
               "training.kubeflow.org/job-name: x}, annotations: {b: c}, finalizers: [d.e/f]}}}}"));
  const Json& meta = world.at("Pod/p-worker-1").get("metadata");
  CHECK(meta.get("labels") ==
        yaml("{team: a, training.kubeflow.org/operator-name: tfjob-controller, "
             "training.kubeflow.org/job-name: p, training.kubeflow.org/replica-type: worker, "
             "training.kubeflow.org/replica-index: '1'}"));
  CHECK(meta.get("annotations") == yaml("{b: c}"));
  CHECK(meta.get("finalizers") == yaml("[d.e/f]"));
  CHECK(meta.get("ownerReferences") ==
        yaml("[{apiVersion: kubeflow.org/v1, kind: TFJob, name: p, uid: job-uid, controller: true, "
             "blockOwnerDeletion: true}]"));
  CHECK(world.at("Pod/p-worker-0")
            .get("metadata")
            .get("labels")
            .get_string("training.kubeflow.org/job-role") == "master");
  const Json& service = world.at("Service/p-worker-1");
  CHECK(service.get("spec") ==
        yaml("{clusterIP: None, ports: [{name: tfjob-port, port: 2222}], selector: "
             "{training.kubeflow.org/operator-name: tfjob-controller, "
             "training.kubeflow.org/job-name: p, training.kubeflow.org/replica-type: worker, "
             "training.kubeflow.org/replica-index: '1'}}"));
  CHECK(service.get("metadata").get("labels") == service.get("spec").get("selector"));
}

TEST_CASE("CO27: --enable-scheme") {
  CHECK(enabled_frameworks({})->size() == 6);
  const auto two = enabled_frameworks({"tfjob", "PYTORCHJOB", "TFJob"});
  REQUIRE(two.has_value());
  CHECK(two->size() == 2);
  CHECK(enabled_frameworks({"MXJob"}).error() ==
        "unknown kind \"MXJob\": the kinds are PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob, "
        "MPIJob");
}

TEST_CASE("a child that is refused is reported by the first condition, until it is accepted") {
  World world;
  world.refusal = kube::Refusal{kube::kPods, "pods \"p-master-0\" is forbidden: exceeded quota: q"};
  REQUIRE(world.apply(make_job("PyTorchJob", "Master Worker")) == 201);
  world.settle();
  CHECK(world.conditions() == "ReplicaFailure Created");
  CHECK(world.message("ReplicaFailure") == "QuotaExceeded: " + world.refusal->message);
  const kube::Json job = world.at("PyTorchJob/p");
  CHECK(job.get("status").get_array("conditions")[0].get_string("reason") == "QuotaExceeded");
  const int writes = world.writes;
  world.advance(60);
  CHECK(world.writes == writes);

  world.refusal.reset();
  world.all_pods("Running");
  CHECK(world.conditions() == "Created Running");
}

TEST_CASE("an end is the last word: a refusal before it stays as it was") {
  World world(make_job("PyTorchJob", "Master"));
  world.all_pods("Running");
  world.pod("p-master-0", "Succeeded", 0);
  const std::string conditions = world.conditions();
  world.refusal = kube::Refusal{kube::kServices, "no"};
  world.settle();
  CHECK(world.conditions() == conditions);
}
