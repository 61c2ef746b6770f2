// A job is followed from its creation to its end: its writes, its phases, its reports.
#include "api/api.hh"
#include "kube/model/digest.hh"
#include "runtimes/trainjob/children.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Reasons = std::vector<std::string>;

Json node_status(int active, int ready, int succeeded = 0, int failed = 0, int suspended = 0) {
  return Json::object({{"name", "node"},
                       {"ready", ready},
                       {"succeeded", succeeded},
                       {"failed", failed},
                       {"active", active},
                       {"suspended", suspended}});
}

Json jobset_status(Json jobs, Json conditions = Json::array(), int restarts = 0) {
  return Json::object({{"restarts", restarts},
                       {"replicatedJobsStatus", std::move(jobs)},
                       {"conditions", std::move(conditions)}});
}

Json condition(std::string_view type, std::string_view reason, std::string_view message,
               std::string_view status = "True") {
  return Json::object({{"type", type},
                       {"status", status},
                       {"reason", reason},
                       {"message", message},
                       {"lastTransitionTime", "2027-01-15T08:30:00Z"},
                       {"observedGeneration", 3}});
}

void start_nodes(World& world, std::string_view phase, bool is_ready, std::int32_t attempt = 0) {
  for (int i = 0; i < 2; ++i) {
    PodSpec pod;
    pod.name = "j-node-0-" + std::to_string(i) + "-a" + std::to_string(attempt);
    pod.index = i;
    pod.phase = phase;
    pod.node_name = "m" + std::to_string(i);
    pod.is_ready = is_ready;
    pod.attempt = attempt;
    world.put_pod(pod);
  }
}

// There are two nodes, and the second fails before that is seen.
void run_and_fail(World& world) {
  world.settle();
  start_nodes(world, "Running", true);
  world.settle();
  world.fail_pod("j-node-0-1-a0", 3, "ValueError: no such file");
}

TEST_CASE("a new job gets a snapshot, then its JobSet, and an empty conditions list") {
  World world;
  const TrainJobPlan plan = world.reconcile();

  REQUIRE(plan.actions.size() == 2);
  const kube::Action& snapshot = plan.actions[0];
  CHECK(snapshot.verb == kube::Action::Verb::kCreate);
  CHECK(snapshot.stage == 0);
  CHECK(snapshot.key.to_string() == "ns/j-runtime-snapshot");
  CHECK(snapshot.owner_uid == "job-uid");
  CHECK(snapshot.body.get_bool("immutable"));
  const Json* text = snapshot.body.find_path({"data", "runtime"});
  REQUIRE(text);
  CHECK(text->as_string().find("kind: ClusterTrainingRuntime") != std::string::npos);
  CHECK(text->as_string().find("name: rt") != std::string::npos);
  CHECK(text->as_string().find("resourceVersion") == std::string::npos);

  const kube::Action& jobset = plan.actions[1];
  CHECK(jobset.verb == kube::Action::Verb::kApply);
  CHECK(jobset.stage == 2);
  CHECK(jobset.body.find("metadata")->get_array("ownerReferences").size() == 1);
  CHECK(jobset.body.find("metadata")->get_array("ownerReferences")[0] ==
        owner_reference(world.job()));
  CHECK_FALSE(jobset.body.find_path({"metadata", "uid"}));

  CHECK(world.phase() == "Pending");
  CHECK(world.reason() == "CreatingPods");
  CHECK(world.conditions().empty());
  CHECK(world.job().status.nodes->total == 2);

  // The job is bound to it only once it exists: the write may yet be refused.
  CHECK(world.status().get_string("runtimeSnapshotHash").empty());
  const std::string hash = kube::sha256_hex(text->as_string());
  world.settle();
  CHECK(world.status().get_string("runtimeSnapshotHash") == hash);
}

TEST_CASE("that a new job is on its way can wait for its pods") {
  Json start = train_job();
  SECTION("it runs") {
    World world(start);
    world.are_minor_statuses_held = true;
    TrainJobPlan plan = world.reconcile();
    CHECK(plan.is_status_minor());
    CHECK(plan.total_nodes == 2);
    CHECK(world.phase().empty());
    // A count that only the plan had that built the JobSet is still known.
    plan = world.reconcile();
    CHECK(plan.is_status_minor());
    CHECK(plan.actions.empty());
    REQUIRE(plan.status_patch);
    CHECK(plan.status_patch->find_path({"status", "nodes"})->get_int("total") == 2);
    CHECK_FALSE(plan.status_patch->find("status")->get_string("runtimeSnapshotHash").empty());
  }
  SECTION("there is no room for it yet, as for most of a burst; other reasons are reported") {
    const auto [why, is_minor] =
        GENERATE(table<std::string, bool>({{"Unschedulable", true}, {"ImagePullBackOff", false}}));
    World world(start);
    world.are_minor_statuses_held = true;
    world.reconcile();
    PodSpec pod;
    pod.waiting_reason = why;
    pod.node_name = is_minor ? "" : "m";
    world.put_pod(pod);
    CHECK(world.reconcile().is_status_minor() == is_minor);
  }
  SECTION("it is suspended, which Kueue waits to hear") {
    start["spec"].set("suspend", true);
    CHECK_FALSE(World(start).reconcile().is_status_minor());
  }
  SECTION("it cannot be built, which its owner should hear") {
    World world(start);
    world.is_runtime_deleted = true;
    CHECK_FALSE(world.reconcile().is_status_minor());
    CHECK(world.reason() == "RuntimeNotFound");
  }
}

TEST_CASE("suspend, resume, run, complete: one phase and one event a step") {
  Json start = train_job();
  start["spec"].set("suspend", true);
  World world(start);
  std::vector<std::pair<std::string, std::string>> golden;  // phase, conditions
  Reasons events;
  const auto step = [&] {
    for (const std::string& reason : world.settle()) events.push_back(reason);
    golden.emplace_back(world.phase(), world.conditions());
  };

  step();  // born suspended
  CHECK(world.jobset->find_path({"spec", "suspend"})->as_bool());
  world.set_jobset_status(
      jobset_status(Json::array({node_status(0, 0, 0, 0, 1)}),
                    Json::array({condition("Suspended", "SuspendedJobs", "jobset is suspended")})));
  step();
  world.set_spec("suspend", false);
  step();
  CHECK_FALSE(world.jobset->find_path({"spec", "suspend"})->as_bool());
  world.set_jobset_status(jobset_status(Json::array({node_status(1, 0)})));
  PodSpec unscheduled;
  unscheduled.name = "j-node-0-0-a0";
  world.put_pod(unscheduled);
  step();
  start_nodes(world, "Pending", false);
  step();
  start_nodes(world, "Running", true);
  world.set_jobset_status(jobset_status(Json::array({node_status(1, 1)})));
  step();
  start_nodes(world, "Succeeded", false);
  world.set_jobset_status(jobset_status(
      Json::array({node_status(0, 0, 1)}),
      Json::array({condition("Completed", "AllJobsCompleted", "jobset completed successfully")})));
  step();

  CHECK(golden == std::vector<std::pair<std::string, std::string>>{
                      {"Suspended", "Suspended=True"},
                      {"Suspended", "Suspended=True"},
                      {"Pending", "Suspended=False"},
                      {"Pending", "Suspended=False"},
                      {"Starting", "Suspended=False"},
                      {"Running", "Suspended=False"},
                      {"Complete", "Suspended=False,Complete=True"}});
  CHECK(events == Reasons{"Created", "Suspended", "Resumed", "Running", "Complete"});
  const TrainJob job = world.job();
  CHECK(job.status.completionTime->to_string() == "2027-01-15T08:30:00Z");
  const auto* complete = kube::find_condition(job.status.conditions, "Complete");
  CHECK(complete->reason == "AllJobsCompleted");
  CHECK(complete->message == "jobset completed successfully");
  CHECK(complete->last_transition_time->to_string() == "2027-01-15T08:30:00Z");
  CHECK(complete->observed_generation == 3);
  REQUIRE(job.status.jobsStatus.size() == 1);
  CHECK(job.status.jobsStatus[0].succeeded == 1);
}

TEST_CASE("all nodes have a machine for a while: one event, also when nothing else changes") {
  World world;
  CHECK(world.settle() == Reasons{"Created"});
  PodSpec first;
  first.name = "j-node-0-0-a0";
  first.node_name = "m";
  world.put_pod(first);
  CHECK(world.settle().empty());  // the second pod does not exist yet
  CHECK(world.phase() == "Starting");
  start_nodes(world, "Pending", false);
  CHECK(world.settle().empty());  // most run before that
  TrainJobPlan plan = world.reconcile();
  REQUIRE(plan.requeue_after);
  CHECK(*plan.requeue_after <= std::chrono::seconds(5));
  world.advance(std::chrono::seconds(5));
  plan = world.reconcile();
  REQUIRE(reasons_of(plan) == Reasons{"Scheduled"});
  CHECK(plan.events[0].message == "2 of 2 nodes have a machine");
  CHECK(plan.events[0].time == kube::PlannedEvent::Time::kAfterActions);
  CHECK(world.settle().empty());
  world.restart();  // the event of the former process is there
  CHECK(world.settle().empty());
}

TEST_CASE("a failed job names the pod that failed first, also once its pods are gone") {
  World world;
  run_and_fail(world);
  CHECK(world.settle() == Reasons{"NodeFailed"});
  CHECK(world.phase() == "Running");
  world.advance(std::chrono::seconds(2));
  world.fail_pod("j-node-0-0-a0", 1, "connection reset");
  world.settle();
  world.set_jobset_status(jobset_status(
      Json::array({node_status(0, 0, 0, 1)}),
      Json::array(
          {condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")})));
  const auto events = world.settle();
  CHECK(events == Reasons{"Failed"});
  CHECK(world.phase() == "Failed");
  world.pods.clear();
  CHECK(world.settle().empty());

  const auto failure = world.job().status.firstFailure;
  REQUIRE(failure);
  CHECK(failure->pod == "j-node-0-1-a0");
  CHECK(failure->index == 1);
  CHECK(failure->exitCode == 3);
  CHECK(failure->node == "m1");
  CHECK(failure->container == "node");
  CHECK(world.message().find("exit code 3") != std::string::npos);
  CHECK(world.message().find("ValueError: no such file") != std::string::npos);
}

TEST_CASE("the first failure of a JobSet that was deleted is not that of the next one") {
  World world;
  run_and_fail(world);
  world.settle();
  REQUIRE(world.job().status.firstFailure);
  world.pods.clear();
  world.jobset.reset();
  world.settle();
  REQUIRE(world.jobset);
  CHECK_FALSE(world.job().status.firstFailure);
}

TEST_CASE("a restart is reported once and counted") {
  World world;
  world.settle();
  start_nodes(world, "Running", true);
  world.settle();
  world.fail_pod("j-node-0-0-a0", 1);
  world.settle();
  world.set_jobset_status(
      jobset_status(Json::array({node_status(1, 0)}),
                    Json::array({condition("RestartingJobSet", "DefaultFailurePolicy",
                                           "applying RestartJobSet failure policy action")}),
                    1));
  CHECK(world.settle() == Reasons{"Restarting"});
  CHECK(world.phase() == "Restarting");
  CHECK(world.message().starts_with("restart 1: applying RestartJobSet failure policy action; "));
  CHECK(world.job().status.restarts == 1);

  world.pods.clear();
  start_nodes(world, "Pending", false, 1);
  CHECK(world.settle().empty());
  CHECK(world.phase() == "Restarting");
  start_nodes(world, "Running", true, 1);
  world.set_jobset_status(jobset_status(
      Json::array({node_status(1, 1)}),
      Json::array({condition("RestartingJobSet", "JobsReady", "all jobs are ready", "False")}), 1));
  CHECK(world.settle() == Reasons{"Running"});

  // The failure of the later attempt replaces the earlier one's.
  world.fail_pod("j-node-0-1-a1", 7);
  world.settle();
  CHECK(world.job().status.firstFailure->attempt == 1);
  CHECK(world.job().status.firstFailure->exitCode == 7);
}

TEST_CASE("a replaced pod is a restart of the job's own, without a JobSet restart") {
  World world;
  world.settle();
  start_nodes(world, "Running", true);
  world.settle();
  world.fail_pod("j-node-0-1-a0", 1);
  PodSpec next;
  next.name = "j-node-0-1-next";
  next.index = 1;
  world.put_pod(next);
  CHECK(world.settle() == Reasons{"Restarting"});
  CHECK(world.phase() == "Restarting");
  CHECK(world.job().status.restarts == 0);
  CHECK(world.message() == "1 of 2 nodes are running");
}

TEST_CASE("an unchanged job costs nothing, in any phase") {
  const auto prepare = GENERATE(0, 1, 2, 3, 4);
  Json start = train_job();
  start["spec"].set("suspend", prepare == 1);
  World world(start);
  world.settle();
  if (prepare >= 2) {
    start_nodes(world, prepare == 2 ? "Pending" : "Running", prepare > 2);
    world.set_jobset_status(jobset_status(Json::array({node_status(1, prepare > 2 ? 1 : 0)})));
  }
  if (prepare == 4) {
    world.set_jobset_status(
        jobset_status(Json::array({node_status(0, 0, 1)}),
                      Json::array({condition("Completed", "AllJobsCompleted", "done")})));
  }
  world.settle();
  const int requests = world.requests;
  world.restart();
  world.reads = 0;
  for (int i = 0; i < 3; ++i) {
    const TrainJobPlan plan = world.reconcile();
    CHECK(plan.actions.empty());
    CHECK_FALSE(plan.status_patch);
    CHECK(plan.events.empty());
  }
  CHECK(world.requests == requests);
  CHECK(world.reads <= 2);
}

TEST_CASE("a finished job gets no child ever again") {
  World world;
  world.settle();
  world.set_jobset_status(
      jobset_status(Json::array({node_status(0, 0, 1)}),
                    Json::array({condition("Completed", "AllJobsCompleted", "done")})));
  world.settle();
  const Json status = world.status();
  world.jobset.reset();
  world.others.clear();
  world.restart();
  CHECK(world.settle().empty());
  CHECK_FALSE(world.jobset);
  CHECK(world.others.empty());
  CHECK(world.status() == status);

  SECTION("suspending it later shows, and nothing else happens") {
    world.set_spec("suspend", true);
    world.settle();
    CHECK(world.conditions() == "Complete=True,Suspended=True");
    CHECK(world.phase() == "Complete");
    CHECK_FALSE(world.jobset);
  }
  SECTION("a JobSet that says otherwise later is not believed") {
    World other = world;
    other.jobset =
        yaml("{metadata: {name: j, namespace: ns, uid: jobset-uid}, spec: {replicatedJobs: []}}");
    (*other.jobset)["metadata"].set("ownerReferences", Json::array({owner_reference(other.job())}));
    other.set_jobset_status(
        jobset_status(Json::array(), Json::array({condition("Failed", "FailedJobs", "failed")})));
    other.settle();
    CHECK(other.conditions() == "Complete=True");
    CHECK(other.phase() == "Complete");
  }
}

TEST_CASE(
    "a JobSet deleted before its end is made again from the snapshot; one that had ended is not") {
  World world;
  world.settle();
  world.runtime["spec"]["mlPolicy"].set("numNodes", 9);
  const Json first = *world.jobset;
  world.jobset.reset();
  SECTION("on its way") {
    world.settle();
    REQUIRE(world.jobset);
    CHECK((*world.jobset)["spec"] == *first.find("spec"));
  }
  SECTION("at its end") {
    world.deleted_jobset = first;
    world.deleted_jobset->set(
        "status", jobset_status(Json::array({node_status(0, 0, 1)}),
                                Json::array({condition("Completed", "AllJobsCompleted", "done")})));
    CHECK(world.settle() == Reasons{"Complete"});
    CHECK_FALSE(world.jobset);
  }
}

// The admin has corrected the runtime, and the user has deleted the former snapshot.
TEST_CASE("a job that has not begun is bound to its new snapshot, not to the one before") {
  World world;
  world.reconcile();
  world.reconcile();
  world.jobset.reset();  // it was refused
  world.reconcile();
  const std::string first(world.status().get_string("runtimeSnapshotHash"));
  REQUIRE(!first.empty());
  world.jobset.reset();
  world.object["status"].erase("jobsStatus");
  world.others.clear();
  world.runtime["spec"]["mlPolicy"].set("numNodes", 3);
  world.restart();
  world.settle();
  REQUIRE(world.jobset);
  CHECK(world.status().get_string("runtimeSnapshotHash") != first);
  for (const bool is_suspended : {true, false}) {
    world.set_spec("suspend", is_suspended);
    world.settle();
    CHECK(world.reason() != "RuntimeSnapshotInvalid");
    CHECK(world.jobset->get("spec").get_bool("suspend") == is_suspended);
  }
}

TEST_CASE("restarts are shown beside their budgets where the job asks for them") {
  struct Row {
    const char* policy;  // the policy of the job
    const char* status;  // the status of the JobSet
    const char* budget;
  };
  const Row rows[] = {
      {"", "{restarts: 2, restartsCountTowardsMax: 1}", ""},
      {"{}", "{restarts: 0}", "0/0"},
      {"{maxRestarts: 3}", "{restarts: 2, restartsCountTowardsMax: 1}", "1/3"},
      {"{maxRestarts: 3, maxDisruptionRestarts: 2}", "{restarts: 2, restartsCountTowardsMax: 1}",
       "1/3+1/2"},
      {"{maxDisruptionRestarts: 2}", "{restarts: 0}", "0/0+0/2"},
      {"{maxRestarts: 3}",
       "{restarts: 0, replicatedJobsStatus: [{name: node, ready: 0, succeeded: 0, failed: 0, "
       "active: 0, suspended: 0, jobRestartsCountTowardsMax: [0, 2]}]}",
       "2/3"},
  };
  for (const Row& row : rows) {
    INFO(row.policy << " " << row.status);
    Json job = train_job();
    if (*row.policy) job["spec"].set("failurePolicy", yaml(row.policy));
    World world(job);
    world.settle();
    world.set_jobset_status(yaml(row.status));
    world.settle();
    CHECK(world.status().get_string("restartBudget") == row.budget);
    CHECK((world.status().find("restartBudget") == nullptr) == (*row.policy == 0));
  }
}

TEST_CASE("a JobSet suspended by another client is resumed") {
  World world;
  world.settle();
  (*world.jobset)["spec"].set("suspend", true);
  world.settle();
  CHECK_FALSE(world.jobset->find_path({"spec", "suspend"})->as_bool());
}

TEST_CASE("what a scheduler puts into a patch appears in the JobSet and disappears again") {
  Json start = train_job();
  start["spec"].set("suspend", true);
  World world(start);
  world.settle();
  const auto patches = [](bool is_filled) {
    return yaml(
        is_filled
            ? R"(
- manager: kueue.x-k8s.io/manager
  trainingRuntimeSpec:
    template:
      spec:
        replicatedJobs:
        - name: node
          template:
            spec:
              template:
                metadata: {labels: {kueue.x-k8s.io/podset: node}}
                spec:
                  nodeSelector: {pool: a}
                  tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]
)"
            : "[{manager: kueue.x-k8s.io/manager, trainingRuntimeSpec: {template: {spec: {}}}}]");
  };
  const auto pod = [&world] {
    return (*world.jobset->find_path({"spec"}))
        .get_array("replicatedJobs")[0]
        .find_path({"template", "spec", "template"});
  };

  world.set_spec("runtimePatches", patches(true));
  world.settle();
  REQUIRE(pod()->find_path({"spec", "nodeSelector", "pool"}));
  CHECK(pod()->find_path({"spec", "tolerations"})->size() == 1);
  CHECK(pod()->find_path({"metadata", "labels", "kueue.x-k8s.io/podset"}));
  world.set_spec("suspend", false);
  world.settle();
  CHECK_FALSE(world.jobset->find_path({"spec", "suspend"})->as_bool());
  CHECK(pod()->find_path({"spec", "nodeSelector", "pool"}));
  world.set_spec("suspend", true);
  world.settle();
  CHECK(world.jobset->find_path({"spec", "suspend"})->as_bool());
  world.set_spec("runtimePatches", patches(false));
  world.settle();
  CHECK_FALSE(pod()->find_path({"spec", "nodeSelector"}));
  CHECK_FALSE(pod()->find_path({"spec", "tolerations"}));
  CHECK_FALSE(pod()->find_path({"metadata", "labels", "kueue.x-k8s.io/podset"}));

  // Patches and resumption in one request.
  world.set_spec("runtimePatches", patches(true));
  world.set_spec("suspend", false);
  world.settle();
  CHECK_FALSE(world.jobset->find_path({"spec", "suspend"})->as_bool());
  CHECK(pod()->find_path({"spec", "nodeSelector", "pool"}));
}

TEST_CASE("a queue label makes a suspended job Queued") {
  Json start = train_job();
  start["spec"].set("suspend", true);
  start["metadata"].set("labels", Json::object({{"kueue.x-k8s.io/queue-name", "lq"}}));
  World world(start);
  world.settle();
  CHECK(world.phase() == "Queued");
  CHECK(world.reason() == "WaitingForQuota");
  CHECK(world.message() == "waits in queue \"lq\" until Kueue admits it");
}

TEST_CASE("an owner's JobSet keeps the JobSet controller that was set at its creation") {
  World world;
  world.managed_by_stamp = "trainer.kubeflow.org/other-controller";
  world.settle();
  CHECK(world.jobset->find_path({"spec", "managedBy"})->as_string() ==
        "trainer.kubeflow.org/other-controller");
  world.managed_by_stamp.clear();
  world.set_spec("suspend", true);
  world.settle();
  CHECK(world.jobset->find_path({"spec", "managedBy"})->as_string() ==
        "trainer.kubeflow.org/other-controller");
}

TEST_CASE("another controller's job is left alone") {
  Json start = train_job();
  start["spec"].set("managedBy", "kueue.x-k8s.io/multikueue");
  World world(start);
  const TrainJobPlan plan = world.reconcile();
  CHECK(plan.actions.empty());
  CHECK_FALSE(plan.status_patch);
  CHECK_FALSE(plan.requeue_after);
  CHECK(world.reads == 0);
}

TEST_CASE("a job that is being deleted gets nothing new") {
  Json start = train_job();
  start["metadata"].set("deletionTimestamp", "2027-01-15T09:00:00Z");
  World world(start);
  CHECK(world.settle().empty());
  CHECK(world.requests == 0);
}

TEST_CASE("an unknown kind of runtime ends the job at once") {
  Json start = train_job();
  start["spec"].set("runtimeRef", yaml("{name: x, kind: Deployment, apiGroup: apps}"));
  World world(start);
  CHECK(world.settle() == Reasons{"Failed"});
  const auto job = world.job();
  const auto* failed = kube::find_condition(job.status.conditions, "Failed");
  REQUIRE(failed);
  CHECK(failed->reason == "TrainingRuntimeNotSupported");
  CHECK(failed->message == "unsupported runtime: Deployment.apps");
  CHECK(world.phase() == "Failed");
  CHECK_FALSE(world.jobset);
}

}  // namespace
}  // namespace trainer::test
