// A child that is refused is reported by the condition ReplicaFailure, as long as it is refused.
#include "runtimes/lifecycle/reasons.hh"
#include "tests/unit/jobset/world.hh"

using namespace trainer;
using namespace trainer::jobset::test;
using kube::Json;
using std::chrono::seconds;

namespace {

constexpr const char* kClaims =
    "  volumeClaimPolicies:\n"
    "  - templates:\n"
    "    - metadata: {name: data}\n"
    "      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";

std::string message_of(const World& world) {
  for (const Json& condition : world.jobset().get("status").get_array("conditions"))
    if (condition.get_string("type") == kReplicaFailure)
      return std::string(condition.get_string("message"));
  return {};
}

std::string reported(const World& world) {
  const std::string reason = world.condition_reason(kReplicaFailure);
  return reason.empty() ? reason : reason + ": " + message_of(world);
}

}  // namespace

TEST_CASE("each kind of child that is refused is reported, until it is accepted") {
  struct Row {
    const char* kind;
    const char* message;
    const char* reported;
  };
  const Row row = GENERATE(
      Row{"Job", "spec.template: Required value", "JobsRefused: spec.template: Required value"},
      Row{"Job", "exceeded quota: q", "QuotaExceeded: exceeded quota: q"},
      Row{"Service", "denied the request", "ServicesRefused: denied the request"},
      Row{"PersistentVolumeClaim", "forbidden", "ClaimsRefused: forbidden"});
  World world(test_js(kClaims));
  world.is_of_trainjob = GENERATE(false, true);
  world.refusals = {{row.kind, row.message}};
  world.context();
  CHECK(reported(world).empty());
  world.context();
  CHECK(reported(world) == row.reported);
  // The refusal itself has made an event already.
  for (const auto& event : world.events) CHECK(event.message != row.message);
  // It is reported once.
  const int writes = world.status_writes;
  world.context();
  CHECK(world.status_writes == writes);
  world.refusals.clear();
  world.settle();
  CHECK(reported(world).empty());
}

TEST_CASE("the message follows the refusal, and the time says since when it lasts") {
  World world(test_js());
  world.refusals = {{"Job", "first"}};
  world.context();
  world.context();
  const auto time = [&world] {
    for (const Json& condition : world.jobset().get("status").get_array("conditions"))
      if (condition.get_string("type") == kReplicaFailure)
        return std::string(condition.get_string("lastTransitionTime"));
    return std::string();
  };
  const std::string since = time();
  world.now = world.now + seconds(60);
  world.refusals = {{"Job", "second"}};
  world.context();
  world.context();
  CHECK(reported(world) == "JobsRefused: second");
  CHECK(time() == since);
}

TEST_CASE("a JobSet that is suspended waits for nothing") {
  World world(test_js());
  world.refusals = {{"Job", "no"}};
  world.context();
  world.context();
  CHECK_FALSE(reported(world).empty());
  world.set_suspend(true);
  world.context();
  world.settle();
  CHECK(reported(world).empty());
}

TEST_CASE("pods that are refused: the Job's events say it") {
  World world(test_js());
  world.jobset()["metadata"]["creationTimestamp"] = world.now.to_string();
  world.settle();
  kube::Plan plan = world.context();
  CHECK_FALSE(plan.needs_events);  // the Job controller has not begun
  for (const std::string& job : world.job_names())
    world.set_status(job, Json::object({{"startTime", world.now.to_string()}}));
  plan = world.context();
  CHECK_FALSE(plan.needs_events);
  CHECK(plan.requeue_after == seconds(5));
  world.now = world.now + seconds(5);
  plan = world.context();
  REQUIRE(plan.needs_events);
  CHECK(plan.needs_events->kind == "Job");
  CHECK(plan.needs_events->name == world.job_names().front());
  CHECK(plan.requeue_after == seconds(30));

  world.warning = "FailedCreate: pods \"x\" is forbidden: violates PodSecurity";
  world.context();
  CHECK(reported(world) == "PodsRefused: pods \"x\" is forbidden: violates PodSecurity");
  REQUIRE_FALSE(world.events.empty());
  CHECK(texts({world.events.back()}).front() ==
        "Warning PodsRefused: pods \"x\" is forbidden: violates PodSecurity");

  SECTION("the pods are there") {
    for (const std::string& job : world.job_names()) world.activate(job);
    plan = world.context();
    CHECK_FALSE(plan.needs_events);
    CHECK(reported(world).empty());
  }
  SECTION("a warning about something else is none about pods") {
    world.warning = "FailedScheduling: no room";
    world.context();
    CHECK(reported(world).empty());
  }
}

TEST_CASE("the controller of a TrainJob reads the events of its Jobs") {
  World world(test_js());
  world.is_of_trainjob = true;
  world.settle();
  for (const std::string& job : world.job_names())
    world.set_status(job, Json::object({{"startTime", world.now.to_string()}}));
  world.now = world.now + seconds(60);
  const kube::Plan plan = world.context();
  CHECK_FALSE(plan.needs_events);
  CHECK_FALSE(plan.requeue_after);
}

TEST_CASE("advice is about who refused, if the message shows it") {
  struct Row {
    const char* reason;
    const char* message;
    const char* advice;
  };
  const Row row = GENERATE(
      Row{"QuotaExceeded", "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1",
          "A ResourceQuota"},
      Row{"PodsRefused", "pods \"p\" is forbidden: failed quota: q: must specify cpu",
          "so each container must ask for it"},
      Row{"PodsRefused", "pods \"p\" is forbidden: maximum cpu usage per Container is 1",
          "A LimitRange"},
      Row{"PodsRefused", "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\"",
          "The Pod Security level"},
      Row{"JobsRefused", "admission webhook \"w.example.com\" denied the request: no",
          "The admission webhook that the message names refuses"},
      Row{"ServicesRefused", "failed calling webhook \"w.example.com\": connection refused",
          "does not answer"},
      Row{"JobsRefused", "Required value: Limit must be set for non overcommitable resources",
          "under limits, too"},
      Row{"JobsRefused", "spec.containers[0].volumeMounts[0].name: Not found: \"data\"",
          "A mount needs a volume"},
      Row{"JobsRefused", "spec.template.spec.tolerations[0].operator: Invalid value: \"Like\"",
          "Correct the toleration"},
      Row{"PodsRefused", "error looking up service account ns/x: serviceaccount \"x\" not found",
          "Create the ServiceAccount"},
      Row{"PodsRefused",
          "pods is forbidden: User \"system:serviceaccount:ns:trainer\" cannot create resource",
          "The controller has no right"},
      Row{"ClaimsRefused", "something else", "refused the claims"},
      Row{"Unschedulable", "tolerations", "Compare resourcesPerNode"},  // a scheduler refuses none
      Row{"ChildRefused", "anything", "Change what the message names"});
  CAPTURE(row.message);
  CHECK_THAT(std::string(advice_for(row.reason, row.message)), kube::test::contains(row.advice));
}
