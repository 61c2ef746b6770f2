// Deadlines, times to live and waiting.
#include "kube/model/time.hh"

#include <algorithm>

#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;
using namespace std::chrono_literals;
using Reasons = std::vector<std::string>;

Json job_with(std::string_view field, int seconds) {
  Json job = train_job();
  job["spec"].set(field, seconds);
  return job;
}

World at_creation(Json job) {
  World world(std::move(job));
  world.now = *kube::Time::parse("2027-01-15T08:00:00Z");
  return world;
}

TEST_CASE("a deadline ends the job strictly after it has passed") {
  World world = at_creation(job_with("activeDeadlineSeconds", 60));
  TrainJobPlan plan = world.reconcile();
  CHECK(plan.requeue_after == 60'001ms);
  world.advance(60s);
  CHECK(world.reconcile().actions.empty());
  CHECK(world.phase() == "Pending");
  world.advance(1s);
  plan = world.reconcile();
  CHECK(plan.is_status_first());
  REQUIRE(plan.actions.size() == 1);
  CHECK(plan.actions[0].verb == kube::Action::Verb::kDelete);
  CHECK(plan.actions[0].propagation == "Background");
  CHECK(reasons_of(plan) == Reasons{"Failed"});
  CHECK(plan.events[0].end == kube::PlannedEvent::End::kFailed);
  CHECK_FALSE(world.jobset);
  CHECK(world.reason() == "DeadlineExceeded");
  CHECK(world.message() == "TrainJob exceeded its active deadline");
  CHECK(world.settle().empty());
}

TEST_CASE("the cleanup after a deadline is repeated until it is done") {
  World world = at_creation(job_with("activeDeadlineSeconds", 60));
  world.settle();
  const Json jobset = *world.jobset;
  world.advance(61s);
  world.reconcile();
  world.jobset = jobset;  // the delete was lost
  world.restart();
  world.reconcile();
  CHECK_FALSE(world.jobset);

  world.jobset = jobset;
  (*world.jobset)["metadata"].set("deletionTimestamp", "2027-01-15T08:01:02Z");
  CHECK(world.reconcile().actions.empty());
}

TEST_CASE("what the JobSet says later does not replace the deadline") {
  World world = at_creation(job_with("activeDeadlineSeconds", 60));
  world.settle();
  Json jobset = *world.jobset;
  world.advance(61s);
  world.reconcile();
  jobset.set("status",
             Json::object({{"conditions",
                            yaml("[{type: Failed, status: 'True', reason: FailedJobs, message: m, "
                                 "lastTransitionTime: '2027-01-15T08:01:02Z'}]")}}));
  world.jobset = jobset;
  world.reconcile();
  CHECK(world.conditions() == "Failed=True");
  CHECK(world.reason() == "DeadlineExceeded");
}

TEST_CASE("a suspended job has no deadline, and each resumption starts it again") {
  Json start = job_with("activeDeadlineSeconds", 60);
  start["spec"].set("suspend", true);
  World world = at_creation(start);
  world.settle();
  world.advance(1h);
  CHECK(world.settle().empty());
  CHECK(world.phase() == "Suspended");
  world.set_spec("suspend", false);
  world.settle();
  world.advance(60s);
  CHECK(world.settle().empty());
  world.advance(1s);
  CHECK(world.settle() == Reasons{"Failed"});
  CHECK(world.conditions() == "Suspended=False,Failed=True");
}

TEST_CASE("a deadline that passed without a reconcile creates nothing") {
  World world = at_creation(job_with("activeDeadlineSeconds", 60));
  world.advance(1h);
  world.settle();
  CHECK_FALSE(world.jobset);
  CHECK(world.others.empty());
  CHECK(world.phase() == "Failed");
}

// A runtime with this runPolicy.
Json with_run_policy(const char* policy) {
  Json runtime = torch_runtime();
  runtime["spec"].set("runPolicy", yaml(policy));
  return runtime;
}

void complete(World& world) {
  world.set_jobset_status(
      Json::object({{"conditions", yaml("[{type: Completed, status: 'True', reason: r, message: m, "
                                        "lastTransitionTime: '2027-01-15T08:00:00Z'}]")}}));
}

TEST_CASE(
    "a runtime's runPolicy is the default of deadline and time to live; the job's goes first") {
  struct Row {
    const char* runtime;
    const char* job;
    int deadline;  // 0: none
    int ttl;       // -1: none
  };
  const Row rows[] = {
      {"{}", "{}", 0, -1},
      {"{activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 0}", "{}", 60, 0},
      {"{activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 9}",
       "{activeDeadlineSeconds: 30, ttlSecondsAfterFinished: 100}", 30, 100},
      {"{ttlSecondsAfterFinished: 9}", "{activeDeadlineSeconds: 30}", 30, 9},
  };
  for (const Row& row : rows) {
    INFO(row.runtime << " " << row.job);
    Json job = train_job();
    const Json own = yaml(row.job);
    for (const auto& [name, value] : own.as_object()) job["spec"].set(name, value);
    World late(job, with_run_policy(row.runtime));
    late.now = *kube::Time::parse("2027-01-15T08:00:00Z");
    World ended = late;
    const bool has_deadline = row.deadline > 0;
    CHECK((late.reconcile().requeue_after == std::chrono::milliseconds(row.deadline * 1'000 + 1)) ==
          has_deadline);
    late.settle();
    late.restart();
    late.runtime = torch_runtime();  // the status has the values that were taken from the other one
    late.advance(61s);
    late.settle();
    CHECK((late.reason() == "DeadlineExceeded") == has_deadline);

    // The controller is killed before its first status; the job ends meanwhile.
    const Json unwritten = ended.object;
    ended.reconcile();
    ended.object = unwritten;
    ended.restart();
    complete(ended);
    World without_snapshot = ended;
    without_snapshot.others.erase("ConfigMap/j-runtime-snapshot");
    World without_both = without_snapshot;
    without_both.is_runtime_deleted = true;
    const auto is_deleted_in_time = [&row](World& world) {
      world.settle();
      world.advance(std::chrono::seconds(std::max(row.ttl, 0)));
      world.settle();
      return world.is_deleted;
    };
    CHECK(is_deleted_in_time(ended) == (row.ttl >= 0));
    CHECK(is_deleted_in_time(without_snapshot) == (row.ttl >= 0));
    World without_jobset = without_snapshot;
    without_jobset.jobset.reset();
    without_jobset.advance(1h);
    without_jobset.settle();
    CHECK(is_deleted_in_time(without_jobset) == (has_deadline && row.ttl >= 0));
    CHECK(is_deleted_in_time(without_both) == (own.get_int("ttlSecondsAfterFinished", -1) >= 0));
  }
}

TEST_CASE("an absurd deadline does not overflow") {
  Json start = train_job();
  start["spec"].set("activeDeadlineSeconds", std::int64_t{9'000'000'000'000'000'000});
  World world = at_creation(start);
  world.settle();
  CHECK(world.phase() == "Pending");
}

TEST_CASE("a finished job is deleted when its time to live is over, once its end is on record") {
  World world = at_creation(job_with("ttlSecondsAfterFinished", 100));
  world.settle();
  world.advance(10s);
  world.set_jobset_status(Json::object(
      {{"conditions",
        yaml("[{type: Completed, status: 'True', reason: AllJobsCompleted, message: m, "
             "lastTransitionTime: '2027-01-15T08:00:10Z'}]")}}));
  TrainJobPlan plan = world.reconcile();
  CHECK(plan.requeue_after == 100s);
  world.advance(99s);
  CHECK(world.reconcile().requeue_after == 1s);
  CHECK_FALSE(world.is_deleted);
  world.advance(1s);
  plan = world.reconcile();
  CHECK(world.is_deleted);
  REQUIRE(plan.actions.size() == 1);
  CHECK(plan.actions[0].propagation == "Foreground");
  CHECK(plan.actions[0].uid == "job-uid");
}

TEST_CASE("a time to live that was over before a reconcile: record first, delete second") {
  World world = at_creation(job_with("ttlSecondsAfterFinished", 0));
  world.settle();
  world.set_jobset_status(Json::object(
      {{"conditions",
        yaml("[{type: Completed, status: 'True', reason: AllJobsCompleted, message: m, "
             "lastTransitionTime: '2027-01-15T08:00:00Z'}]")}}));
  world.advance(1h);
  const TrainJobPlan plan = world.reconcile();
  CHECK(plan.actions.empty());
  CHECK(reasons_of(plan) == Reasons{"Complete"});
  CHECK(plan.requeue_after);
  world.reconcile();
  CHECK(world.is_deleted);
}

TEST_CASE("counters that are held back do not delay the end of a time to live") {
  World world = at_creation(job_with("ttlSecondsAfterFinished", 100));
  world.settle();
  Json status = Json::object(
      {{"conditions",
        yaml("[{type: Completed, status: 'True', reason: AllJobsCompleted, message: m, "
             "lastTransitionTime: '2027-01-15T08:00:00Z'}]")}});
  world.set_jobset_status(status);
  world.reconcile();
  world.are_minor_statuses_held = true;
  status.set("replicatedJobsStatus",
             yaml("[{name: node, ready: 0, succeeded: 1, failed: 0, active: 0, suspended: 0}]"));
  world.set_jobset_status(std::move(status));
  world.advance(99s);
  TrainJobPlan plan = world.reconcile();
  CHECK(plan.is_status_minor());
  CHECK(plan.status_patch);
  CHECK(plan.requeue_after == 1s);
  world.advance(1s);
  plan = world.reconcile();
  CHECK(world.is_deleted);
  CHECK_FALSE(plan.status_patch);
  CHECK_FALSE(plan.requeue_after);
}

TEST_CASE("events are asked for when nothing else explains the wait") {
  World world = at_creation(train_job());
  world.settle();
  world.now = world.now + 1s;
  TrainJobPlan plan = world.reconcile();
  CHECK_FALSE(plan.needs_events);
  CHECK(plan.requeue_after == 4s);
  world.advance(4s);
  plan = world.reconcile();
  CHECK(plan.needs_events);
  CHECK(plan.requeue_after == 30s);

  world.waiting_event =
      "FailedCreate: Error creating: pods \"j-node-0-0-x\" is forbidden: exceeded quota: q";
  plan = world.reconcile();
  CHECK(world.reason() == "QuotaExceeded");
  CHECK(world.message() == "Error creating: pods \"j-node-0-0-x\" is forbidden: exceeded quota: q");
  CHECK(reasons_of(plan) == Reasons{"QuotaExceeded"});
  CHECK(world.settle().empty());
  world.waiting_event.clear();
  world.settle();
  CHECK(world.reason() == "CreatingPods");
}

TEST_CASE("a Job controller that has not come to the job yet is not asked about") {
  World world = at_creation(train_job());
  world.have_jobs_started = false;
  world.settle();
  TrainJobPlan plan;
  for (int seconds = 0; seconds < 30; seconds += 5) {
    plan = world.reconcile();
    INFO(seconds);
    CHECK_FALSE(plan.needs_events);
    CHECK(plan.requeue_after == 5s);
    world.advance(5s);
  }
  // By now something may be wrong with it.
  plan = world.reconcile();
  CHECK(plan.needs_events);
  CHECK(plan.requeue_after == 30s);
  SECTION("it has begun") {
    world.now = world.now + -20s;
    world.have_jobs_started = true;
    CHECK(world.reconcile().needs_events);
  }
  SECTION("there are pods, which no scheduler has processed") {
    world.now = world.now + -20s;
    world.have_jobs_started = true;
    PodSpec other;
    other.name = "j-node-0-1-abcde";
    other.index = 1;
    world.put_pod(other);
    PodSpec pod;
    world.put_pod(pod);
    plan = world.reconcile();
    CHECK_FALSE(plan.needs_events);
    CHECK(plan.requeue_after == 20s);  // the pod shows the steps before that
    CHECK(world.reason() == "Scheduling");
    pod.node_name = "m1";
    world.put_pod(pod);
    CHECK(world.reconcile().needs_events);
  }
}

TEST_CASE("a pod that is refused outweighs what the others wait for") {
  World world = at_creation(train_job());
  world.settle();
  PodSpec pod;
  pod.waiting_reason = "Unschedulable";
  pod.waiting_message = "no room";
  world.put_pod(pod);
  world.settle();
  CHECK(world.reason() == "Unschedulable");
  world.advance(5s);
  const TrainJobPlan plan = world.reconcile();
  CHECK(plan.needs_events == kube::EventSource{"Job", "j-node-0"});
  world.waiting_event = "FailedMount: an older warning about a pod";
  world.settle();
  CHECK(world.reason() == "Unschedulable");
  world.waiting_event = "FailedCreate: Error creating: pods \"x\" is forbidden: exceeded quota: q";
  world.settle();
  CHECK(world.reason() == "QuotaExceeded");
}

TEST_CASE("what its JobSet says is refused is the reason of the job") {
  World world = at_creation(train_job());
  world.settle();
  world.set_jobset_status(
      yaml("{restarts: 0, conditions: [{type: ReplicaFailure, status: 'True', reason: JobsRefused, "
           "message: 'create Job ns/j-node-0: no', lastTransitionTime: '2027-01-15T08:00:00Z'}]}"));
  CHECK(world.settle() == Reasons{"JobsRefused"});
  CHECK(world.phase() == "Pending");
  CHECK(world.reason() == "JobsRefused");
  CHECK(world.message() == "create Job ns/j-node-0: no");
  world.set_jobset_status(yaml("{restarts: 0}"));
  world.settle();
  CHECK(world.reason() == "CreatingPods");
}

TEST_CASE("the events of its JobSet are those of another JobSet controller") {
  World world = at_creation(train_job());
  world.settle();
  world.are_jobs_created = false;
  world.advance(5s);
  CHECK_FALSE(world.reconcile().needs_events);
  world.is_jobset_controller_active = false;
  CHECK(world.reconcile().needs_events == kube::EventSource{"JobSet", "j"});
  world.waiting_event = "JobCreationFailed: job \"j-node-0\" creation failed";
  world.settle();
  CHECK(world.reason() == "JobsRefused");
}

TEST_CASE("pods say why they wait") {
  struct Row {
    const char* waiting_reason;
    const char* message;
    const char* machine;
    const char* phase;
    const char* reason;
  };
  const Row row =
      GENERATE(Row{"Unschedulable", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", "",
                   "Pending", "Unschedulable"},
               Row{"Unschedulable", "pod group \"j\" less than 2", "", "Pending", "GangNotReady"},
               Row{"Unschedulable", "persistentvolumeclaim \"data\" not found", "", "Pending",
                   "VolumeMissing"},
               Row{"SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", "",
                   "Pending", "SchedulingGated"},
               Row{"ImagePullBackOff", "Back-off pulling image \"nope:1\"", "m", "Starting",
                   "ImagePullFailed"},
               Row{"ErrImagePull", "not found", "m", "Starting", "ImagePullFailed"},
               Row{"CreateContainerConfigError", "secret \"token\" not found", "m", "Starting",
                   "ConfigMissing"},
               Row{"RunContainerError", "exec: not found", "m", "Starting", "ContainerStartFailed"},
               Row{"SomethingNew", "?", "m", "Starting", "PodsWaiting"});
  World world;
  world.settle();
  for (int i = 0; i < 2; ++i) {
    PodSpec pod;
    pod.name = "p" + std::to_string(i);
    pod.index = i;
    pod.node_name = row.machine;
    pod.waiting_reason = row.waiting_reason;
    pod.waiting_message = row.message;
    world.put_pod(pod);
  }
  CHECK(world.settle() == Reasons{row.reason});
  CHECK(world.phase() == row.phase);
  CHECK(world.reason() == row.reason);
  CHECK(world.message() == std::string("2 pods: ") + row.message);
}

// The job's nodes wait until a job with this name and these metadata has ended.
Json runtime_with_step(std::string_view name, Json metadata) {
  Json runtime = torch_runtime();
  Json& jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"];
  Json node = jobs.as_array()[0];
  Json step = node;
  step.set("name", std::string(name));
  step["template"].set("metadata", std::move(metadata));
  node.set("dependsOn",
           Json::array({Json::object({{"name", std::string(name)}, {"status", "Complete"}})}));
  jobs = Json::array({step, node});
  return runtime;
}

TEST_CASE("nodes that wait for a step that runs need no explanation") {
  World world(train_job(), runtime_with_step("prepare", Json::object()));
  world.settle();
  PodSpec pod;
  pod.name = "p";
  pod.replicated_job = "prepare";
  pod.phase = "Running";
  pod.node_name = "m";
  pod.is_ready = true;
  world.put_pod(pod);
  world.settle();
  world.advance(60s);
  TrainJobPlan plan = world.reconcile();
  CHECK(world.phase() == "Pending");
  CHECK(world.message() == "waits for 2 pods to be created; prepare runs first");
  CHECK_FALSE(plan.needs_events);
  CHECK_FALSE(plan.requeue_after);

  pod.phase = "Succeeded";
  world.put_pod(pod);
  world.settle();
  CHECK(world.message() == "waits for 2 pods to be created");
  CHECK(world.reconcile().needs_events);
}

TEST_CASE("initializers come first") {
  World world(train_job(),
              runtime_with_step("dataset-initializer",
                                yaml("{labels: {trainer.kubeflow.org/trainjob-ancestor-step: "
                                     "dataset-initializer}}")));
  world.settle();
  CHECK(world.phase() == "Pending");
  PodSpec pod;
  pod.name = "init";
  pod.replicated_job = "dataset-initializer";
  world.put_pod(pod);
  world.settle();
  CHECK(world.phase() == "Pending");
  pod.phase = "Running";
  pod.node_name = "m";
  world.put_pod(pod);
  CHECK(world.settle().empty());
  CHECK(world.phase() == "Initializing");
  CHECK(world.reason() == "InitializersRunning");
  CHECK(world.job().status.nodes->total == 2);

  pod.phase = "Succeeded";
  world.put_pod(pod);
  world.set_jobset_status(
      Json::object({{"replicatedJobsStatus",
                     yaml("[{name: dataset-initializer, ready: 0, succeeded: 1, failed: 0, "
                          "active: 0, suspended: 0}]")}}));
  world.settle();
  CHECK(world.phase() == "Pending");
  for (int i = 0; i < 2; ++i) {
    PodSpec trainer;
    trainer.name = "n" + std::to_string(i);
    trainer.index = i;
    trainer.phase = "Running";
    trainer.node_name = "m";
    trainer.is_ready = true;
    world.put_pod(trainer);
  }
  CHECK(world.settle() == Reasons{"Running"});
}

}  // namespace
}  // namespace trainer::test
