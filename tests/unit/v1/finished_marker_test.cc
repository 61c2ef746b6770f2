// A V1 job that had finished does not run again if a backup of it is restored; metrics count it by
// its status.
#include "runtimes/lifecycle/finished_marker.hh"

#include "runtimes/v1/measures.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer;
using namespace trainer::v1::test;
using kube::Json;

namespace {

constexpr const char* kKey = "PyTorchJob/p";

Json without_status(Json object) {
  object.erase("status");
  object["metadata"].erase("uid");
  return object;
}

v1::JobStatus status_of(const World& world) {
  return read(world.at(kKey)).status;
}

}  // namespace

TEST_CASE("a finished job is marked, and a restored one gets its status back and no pods") {
  const auto [phase, conditions] = GENERATE(table<std::string, std::string>(
      {{"Succeeded", "Created Running! Succeeded"}, {"Failed", "Created Running! Failed"}}));
  World before(make_job("PyTorchJob", "Master Worker", "runPolicy: {backoffLimit: 0}"));
  before.settings.marks_finished = true;
  before.all_pods("Running");
  before.pod("p-master-0", phase, phase == "Failed" ? 1 : 0);
  before.settle();
  REQUIRE(before.conditions() == conditions);
  REQUIRE(before.at(kKey).find_path({"metadata", "annotations", kFinishedMarkerKey}));

  World after;
  REQUIRE(after.apply(without_status(before.at(kKey))) == 201);
  after.settle();
  CHECK(after.conditions() == conditions);
  CHECK(after.names("Pod").empty());
  CHECK(after.names("Service").empty());
  CHECK(status_of(after).completionTime == status_of(before).completionTime);
  CHECK(after.has_event("Restored"));
}

TEST_CASE("without the setting no mark is written, and without a mark a job runs") {
  World before(make_job("PyTorchJob", "Master Worker"));
  before.all_pods("Running");
  before.pod("p-master-0", "Succeeded", 0);
  before.settle();
  CHECK_FALSE(before.at(kKey).find_path({"metadata", "annotations", kFinishedMarkerKey}));
  World after;
  REQUIRE(after.apply(without_status(before.at(kKey))) == 201);
  after.settle();
  CHECK(after.names("Pod").size() == 2);
}

TEST_CASE("phases of V1 jobs have the words of TrainJobs") {
  World world(make_job("PyTorchJob", "Master Worker"));
  CHECK(v1::phase_of(status_of(world)) == "Pending");
  CHECK(v1::waiting_reason(status_of(world), "Pending") == "CreatingPods");
  world.all_pods("Running");
  CHECK(v1::phase_of(status_of(world)) == "Running");
  CHECK(v1::waiting_reason(status_of(world), "Running").empty());
  world.pod("p-master-0", "Succeeded", 0);
  CHECK(v1::phase_of(status_of(world)) == "Complete");
}

TEST_CASE("reasons of failures") {
  World timed(make_job("PyTorchJob", "Master", "runPolicy: {activeDeadlineSeconds: 60}"));
  CHECK(v1::failure_reason(status_of(timed)).empty());
  timed.advance(61);
  CHECK(v1::failure_reason(status_of(timed)) == "DeadlineExceeded");
  World limited(make_job("PyTorchJob", "Master Worker", "runPolicy: {backoffLimit: 0}"));
  limited.pod("p-worker-0", "Failed", 1);
  CHECK(v1::failure_reason(status_of(limited)) == "BackoffLimitExceeded");
  for (const World* each : {&timed, &limited}) CHECK(v1::phase_of(status_of(*each)) == "Failed");
}

TEST_CASE("a delete that is refused has a reason that names what it deletes") {
  const auto reasons_in = [](const V1JobPlan& plan) {
    std::map<std::string, std::string> reasons;
    for (const kube::Action& action : plan.actions)
      if (action.verb == kube::Action::Verb::kDelete)
        reasons.emplace(action.resource.kind, action.failure_reason);
    return reasons;
  };
  using Reasons = std::map<std::string, std::string>;
  World expired(make_job("TFJob", "Worker", "runPolicy: {ttlSecondsAfterFinished: 3}"));
  expired.pod("p-worker-0", "Succeeded", 0);
  expired.now = expired.now + std::chrono::seconds(3);
  CHECK(reasons_in(expired.reconcile("TFJob/p")) == Reasons{{"TFJob", "FailedDeleteJob"}});

  for (const char* kind : {"PyTorchJob", "MPIJob"}) {
    INFO(kind);
    const bool is_mpi = kind == std::string("MPIJob");
    World smaller(make_job(kind, is_mpi ? "Launcher Worker*2" : "Master Worker*2"));
    const std::string key = std::string(kind) + "/p";
    smaller.objects[key]["spec"][is_mpi ? "mpiReplicaSpecs" : "pytorchReplicaSpecs"]["Worker"].set(
        "replicas", 1);
    const Reasons reasons = reasons_in(smaller.reconcile(key));
    REQUIRE(reasons.contains("Pod"));
    CHECK(reasons.at("Pod") == "FailedDeletePod");
  }
}
