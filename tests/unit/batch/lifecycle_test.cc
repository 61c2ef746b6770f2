// Jobs from their first pod to their end, step by step.
#include "tests/unit/batch/world.hh"

using namespace trainer::batch;
using namespace trainer::batch::test;
using kube::Json;

namespace {

const char* const kTwo = "{completionMode: Indexed, completions: 2, parallelism: 2}";
const char* const kTwoStrict =
    "{completionMode: Indexed, completions: 2, parallelism: 2, backoffLimit: 0}";

}  // namespace

TEST_CASE("an Indexed Job gets a pod an index, counts them and completes") {
  World world(kTwo);
  CHECK(world.pods() == "j-0 Pending*, j-1 Pending*");
  CHECK(world.counters() == "2 active");
  CHECK(world.status().get_string("startTime") == world.now.to_string());
  CHECK(world.status().get("ready") == Json(0));
  CHECK(world.status().get("terminating") == Json(0));
  CHECK(world.status().get("uncountedTerminatedPods") == Json::object());
  CHECK(world.status().find("conditions") == nullptr);
  CHECK(world.has_event("Normal SuccessfulCreate: Created pod: j-0-00001"));
  world.run("j-0");
  CHECK(world.counters() == "2 active 1 ready");
  world.succeed("j-0");
  CHECK(world.pods() == "j-0 Succeeded, j-1 Pending*");
  CHECK(world.counters() == "1 active 1 succeeded");
  CHECK(world.status().get_string("completedIndexes") == "0");
  world.succeed("j-1");
  CHECK(world.conditions() == "SuccessCriteriaMet Complete");
  CHECK(world.message("Complete") ==
        "CompletionsReached: Reached expected number of succeeded pods");
  CHECK(world.counters() == "2 succeeded");
  CHECK(world.status().get_string("completedIndexes") == "0,1");
  CHECK(world.status().get_string("completionTime") == world.now.to_string());
  CHECK(world.has_event("Normal Completed: Job completed"));
  const int writes = world.writes;
  world.advance(1'000'000);
  CHECK(world.writes == writes);
}

TEST_CASE("a status that ends a Job is written before its pods go, and the end after them") {
  World world(kTwoStrict);
  world.run("j-0");
  world.run("j-1");
  world.fail("j-0");
  CHECK(world.conditions() == "FailureTarget");
  CHECK(world.pods() == "j-0 Failed, j-1 Running!");
  CHECK(world.counters() == "1 terminating 2 failed");
  world.end_removed();
  CHECK(world.conditions() == "FailureTarget Failed");
  CHECK(world.message("Failed") ==
        "BackoffLimitExceeded: Job has reached the specified backoff limit");
  CHECK(world.pods() == "j-0 Failed");
  CHECK(world.counters() == "2 failed");
  CHECK(
      world.has_event("Warning BackoffLimitExceeded: Job has reached the specified backoff limit"));
  CHECK_FALSE(world.status().find("completionTime"));
}

TEST_CASE("a pod that failed is replaced after ten seconds, then twenty") {
  World world("{completionMode: Indexed, completions: 1, backoffLimit: 2}");
  world.run("j-0");
  world.fail("j-0");
  CHECK(world.pods() == "j-0 Failed");
  CHECK(world.counters() == "1 failed");
  CHECK(world.reconcile().requeue_after == std::chrono::seconds(10));
  world.advance(9);
  CHECK(world.pods() == "j-0 Failed");
  world.advance(1);
  CHECK(world.pods() == "j-0 Failed, j-0 Pending*");
  world.fail("j-0");
  CHECK(world.reconcile().requeue_after == std::chrono::seconds(20));
  world.advance(20);
  world.fail("j-0");
  CHECK(world.message("Failed") ==
        "BackoffLimitExceeded: Job has reached the specified backoff limit");
  CHECK(world.counters() == "3 failed");
}

TEST_CASE("a success ends the wait, and the next failure waits as the first") {
  World world("{completions: 3, parallelism: 1}");
  world.fail("j");
  world.advance(10);
  world.succeed("j");
  CHECK(world.pods() == "j Failed, j Succeeded, j Pending*");
  CHECK(world.counters() == "1 active 1 succeeded 1 failed");
  CHECK(world.status().get("uncountedTerminatedPods") == Json::object());
  world.fail("j");
  CHECK(world.reconcile().requeue_after == std::chrono::seconds(10));
}

TEST_CASE("a Job without completions ends with a success, once no pod runs") {
  World world("{parallelism: 2}");
  CHECK(world.pods() == "j Pending*, j Pending*");
  world.succeed("j");
  CHECK(world.conditions() == "");
  CHECK(world.pods() == "j Pending*, j Succeeded");
  world.fail("j-00001");
  CHECK(world.conditions() == "SuccessCriteriaMet Complete");
  CHECK(world.counters() == "1 succeeded 1 failed");
}

TEST_CASE("a suspended Job has no pods, and what it had does not count") {
  World world(kTwoStrict);
  world.run("j-0");
  world.run("j-1");
  world.patch_job("{spec: {suspend: true}}");
  CHECK(world.conditions() == "Suspended");
  CHECK(world.message("Suspended") == "JobSuspended: Job suspended");
  CHECK(world.pods() == "j-0 Running!, j-1 Running!");
  CHECK(world.counters() == "2 terminating");
  CHECK_FALSE(world.status().find("startTime"));
  CHECK(world.has_event("Normal Suspended: Job suspended"));
  CHECK(world.has_event("Normal SuccessfulDelete: Deleted pod: j-1-00002"));
  world.end_removed();
  CHECK(world.pods() == "");
  CHECK(world.counters() == "");
  world.now = world.now + std::chrono::seconds(60);
  world.patch_job("{spec: {suspend: false}}");
  CHECK(world.conditions() == "Suspended!");
  CHECK(world.message("Suspended") == "JobResumed: Job resumed");
  CHECK(world.pods() == "j-0 Pending*, j-1 Pending*");
  CHECK(world.status().get_string("startTime") == world.now.to_string());
  CHECK(world.has_event("Normal Resumed: Job resumed"));
}

TEST_CASE("a Job that is made suspended says so and starts later") {
  World world("{suspend: true}");
  CHECK(world.conditions() == "Suspended");
  CHECK(world.pods() == "");
  CHECK_FALSE(world.status().find("startTime"));
}

TEST_CASE("what ends a Job early") {
  World deadline("{activeDeadlineSeconds: 30, completions: 1}");
  CHECK(deadline.reconcile().requeue_after == std::chrono::seconds(30));
  deadline.advance(29);
  CHECK(deadline.conditions() == "");
  deadline.advance(1);
  CHECK(deadline.message("Failed") ==
        "DeadlineExceeded: Job was active longer than specified deadline");
  CHECK(deadline.pods() == "");
  CHECK(deadline.counters() == "1 failed");

  World endless("{activeDeadlineSeconds: 10000000000000, completions: 1}");
  CHECK(endless.conditions() == "");
  CHECK(endless.reconcile().requeue_after > std::chrono::hours(24));

  World policy(
      "{completionMode: Indexed, completions: 2, parallelism: 2, podFailurePolicy: {rules: ["
      "{action: Ignore, onPodConditions: [{type: DisruptionTarget}]},"
      "{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}}");
  policy.fail("j-0", 1, "DisruptionTarget");
  CHECK(policy.counters() == "1 active");
  policy.advance(10);
  policy.run("j-0");
  policy.fail("j-1", 42);
  CHECK(policy.message("FailureTarget") ==
        "PodFailurePolicy: Container c for pod ns/j-1-00002 failed with exit code 42 matching "
        "FailJob rule at index 1");
  policy.end_removed();
  CHECK(policy.conditions() == "FailureTarget Failed");

  World success(
      "{completionMode: Indexed, completions: 3, parallelism: 3, successPolicy: {rules: "
      "[{succeededIndexes: '0'}]}}");
  success.run("j-1");
  success.succeed("j-0");
  CHECK(success.conditions() == "SuccessCriteriaMet");
  CHECK(success.pods() == "j-0 Succeeded, j-1 Running!");
  success.end_removed();
  CHECK(success.message("Complete") == "SuccessPolicy: Matched rules at index 0");
  CHECK(success.counters() == "1 succeeded");
}

TEST_CASE("containers that are started again count under restartPolicy OnFailure") {
  World world("{completions: 1, backoffLimit: 2, template: {spec: {restartPolicy: OnFailure}}}");
  const auto restarted = [&world](int times) {
    world.run("j");
    Json& pod = world.all_pods.begin()->second;
    pod["status"].set("containerStatuses",
                      yaml("[{name: c, restartCount: " + std::to_string(times) + "}]"));
    world.settle();
  };
  restarted(1);
  CHECK(world.conditions() == "");
  restarted(2);
  CHECK(world.conditions() == "FailureTarget");
}

TEST_CASE("backoffLimitPerIndex: each index has its own failures and waits") {
  World world("{completionMode: Indexed, completions: 2, parallelism: 2, backoffLimitPerIndex: 1}");
  const auto failures_of = [&world](std::string_view pod) {
    return world.at(pod).get("metadata").get("annotations").get_string(kIndexFailureCountKey);
  };
  CHECK(failures_of("j-0") == "0");
  CHECK(world.status().get("failedIndexes") == Json(""));
  world.fail("j-0");
  // It keeps its finalizer until its successor has its count.
  CHECK(world.pods() == "j-0 Failed*, j-1 Pending*");
  CHECK(world.reconcile().requeue_after == std::chrono::seconds(10));
  world.advance(10);
  CHECK(world.pods() == "j-0 Failed, j-0 Pending*, j-1 Pending*");
  CHECK(failures_of("j-0") == "1");
  CHECK(world.counters() == "2 active 1 failed");
  world.fail("j-0");
  CHECK(world.status().get_string("failedIndexes") == "0");
  CHECK(world.conditions() == "");
  world.advance(10'000);
  CHECK(world.counters() == "1 active 2 failed");
  world.succeed("j-1");
  CHECK(world.message("Failed") == "FailedIndexes: Job has failed indexes");
  CHECK(world.status().get_string("completedIndexes") == "1");

  World strict(
      "{completionMode: Indexed, completions: 3, parallelism: 1, backoffLimitPerIndex: 0, "
      "maxFailedIndexes: 1}");
  strict.fail("j-0");
  CHECK(strict.pods() == "j-0 Failed, j-1 Pending*");
  strict.fail("j-1");
  CHECK(strict.message("Failed") ==
        "MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed "
        "indexes");

  World ruled(
      "{completionMode: Indexed, completions: 2, parallelism: 2, backoffLimitPerIndex: 5, "
      "podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, values: [9]}}, "
      "{action: Ignore, onExitCodes: {operator: In, values: [8]}}]}}");
  ruled.fail("j-0", 9);
  CHECK(ruled.status().get_string("failedIndexes") == "0");
  ruled.fail("j-1", 8);
  ruled.advance(10);
  const Json& annotations = ruled.at("j-1").get("metadata").get("annotations");
  CHECK(annotations.get_string(kIndexFailureCountKey) == "0");
  CHECK(annotations.get_string(kIndexIgnoredFailureCountKey) == "1");
}

TEST_CASE(
    "a pod that a user deletes has failed, and podReplacementPolicy says when it is replaced") {
  World early("{completionMode: Indexed, completions: 1, parallelism: 1}");
  early.run("j-0");
  early.remove("j-0");
  CHECK(early.counters() == "1 terminating 1 failed");
  early.advance(10);
  CHECK(early.pods() == "j-0 Running!, j-0 Pending*");

  World late("{completionMode: Indexed, completions: 1, podReplacementPolicy: Failed}");
  late.run("j-0");
  late.remove("j-0");
  late.advance(100);
  CHECK(late.pods() == "j-0 Running!*");
  CHECK(late.counters() == "1 terminating");
  late.end_removed();
  CHECK(late.pods() == "j-0 Pending*");
  CHECK(late.counters() == "1 active 1 failed");

  World unbound("{completionMode: Indexed, completions: 1, podReplacementPolicy: Failed}");
  unbound.remove("j-0");
  CHECK(unbound.pods() == "");
  CHECK(unbound.counters() == "1 failed");
}

TEST_CASE("surplus pods go, those first that have got least far") {
  World world("{completions: 9, parallelism: 3}");
  world.run("j-00002");
  world.patch_job("{spec: {parallelism: 1}}");
  CHECK(world.pods() == "j Running*");
  CHECK(world.at("j").get("metadata").get_string("name") == "j-00002");
  CHECK(world.counters() == "1 active 1 ready");

  World twice(kTwo);
  twice.run("j-0");
  Json copy = twice.at("j-1");
  copy["metadata"].set("name", "j-0-99999").set("uid", "another");
  copy["metadata"]["annotations"].set("batch.kubernetes.io/job-completion-index", "0");
  twice.all_pods["j-0-99999"] = copy;
  copy["metadata"].set("name", "j-7-99998").set("uid", "of no place");
  copy["metadata"]["annotations"].set("batch.kubernetes.io/job-completion-index", "7");
  twice.all_pods["j-7-99998"] = copy;
  twice.settle();
  CHECK(twice.pods() == "j-0 Running*, j-1 Pending*");
  CHECK(twice.counters() == "2 active 1 ready");
}

TEST_CASE("a refused pod is tried alone, and is not counted") {
  World world("{completions: 4, parallelism: 4, suspend: true}");
  world.refusals = 1;
  world.job = with(world.job, "{spec: {suspend: false}}");
  world.reconcile();
  CHECK(world.pods() == "");
  CHECK(world.counters() == "");
  CHECK_FALSE(world.has_event("SuccessfulCreate"));
  world.settle();
  CHECK(world.counters() == "4 active");
}

TEST_CASE("a pod whose uid is in the status is not counted again") {
  World world("{completions: 2, parallelism: 1}");
  const Json uid = world.at("j").get("metadata").get("uid");
  // A process that ended between status and finalizer leaves this state.
  world.job["status"]["uncountedTerminatedPods"].set("failed", Json::array({uid}));
  world.fail("j");
  CHECK(world.counters() == "1 active 1 failed");
  CHECK(world.status().get("uncountedTerminatedPods") == Json::object());
}

TEST_CASE("pods are let go where no Job counts them") {
  World gone(kTwo);
  gone.job = nullptr;
  gone.settle();
  CHECK(gone.pods() == "j-0 Pending, j-1 Pending");

  World replaced(kTwo);
  replaced.job["metadata"].set("uid", "another");
  replaced.settle();
  CHECK(replaced.pods() == "j-0 Pending, j-0 Pending*, j-1 Pending, j-1 Pending*");

  World orphaned(kTwo);
  for (auto& [name, pod] : orphaned.all_pods) pod["metadata"].erase("ownerReferences");
  orphaned.job = nullptr;
  orphaned.settle();
  CHECK(orphaned.pods() == "j-0 Pending, j-1 Pending");

  World deleted(kTwoStrict);
  deleted.run("j-0");
  deleted.job["metadata"].set("deletionTimestamp", deleted.now.to_string());
  deleted.remove("j-0");
  CHECK(deleted.pods() == "j-0 Running!, j-1 Pending");
  CHECK(deleted.conditions() == "");

  World another(kTwo);
  for (auto& [name, pod] : another.all_pods)
    pod["metadata"]["ownerReferences"].as_array().front().set("kind", "PyTorchJob");
  another.job = nullptr;
  another.settle();
  CHECK(another.pods() == "j-0 Pending*, j-1 Pending*");
}

TEST_CASE("other finalizers of a pod stay") {
  World world("{completions: 1}");
  world.all_pods.begin()->second["metadata"]["finalizers"].push_back("example.com/own");
  world.succeed("j");
  CHECK(world.at("j").get("metadata").get("finalizers") == Json::array({"example.com/own"}));
}

TEST_CASE("a finished Job goes after ttlSecondsAfterFinished") {
  World world("{completions: 1, ttlSecondsAfterFinished: 5}");
  world.succeed("j");
  CHECK(world.reconcile().requeue_after == std::chrono::seconds(5));
  world.advance(4);
  CHECK_FALSE(world.job.is_null());
  world.advance(1);
  CHECK(world.job.is_null());
}

TEST_CASE("a Job of another manager is left alone") {
  World world("{managedBy: kueue.x-k8s.io/multikueue}");
  CHECK(world.writes == 0);
}

TEST_CASE("counters alone make a minor status") {
  World world(kTwo);
  Json& pod = world.all_pods.begin()->second;
  pod = with(pod,
             "{spec: {nodeName: local}, status: {phase: Running, conditions: [{type: Ready, "
             "status: 'True'}]}}");
  const BatchJobPlan counters = world.reconcile();
  CHECK(counters.status_patch.has_value());
  CHECK(counters.is_status_minor());
  pod = with(pod, "{status: {phase: Succeeded}}");
  const BatchJobPlan ended = world.reconcile();
  CHECK(ended.status_patch.has_value());
  CHECK_FALSE(ended.is_status_minor());
  CHECK(ended.is_status_first());
}

TEST_CASE("the status that is written with a delete counts the pod as terminating only") {
  World suspended(kTwoStrict);
  suspended.run("j-0");
  suspended.run("j-1");
  suspended.job = with(suspended.job, "{spec: {suspend: true}}");
  suspended.reconcile();
  CHECK(suspended.counters() == "2 terminating");

  World smaller("{completions: 9, parallelism: 3}");
  for (const char* pod : {"j-00001", "j-00002", "j-00003"}) smaller.run(pod);
  CHECK(smaller.counters() == "3 active 3 ready");
  smaller.job = with(smaller.job, "{spec: {parallelism: 1}}");
  smaller.reconcile();
  CHECK(smaller.counters() == "1 active 1 ready 2 terminating");
}
