// These are seeded walks through the events of a job. In any order: plans settle, an unchanged job
// costs nothing, the end is final.
#include <algorithm>
#include <random>

#include "runtimes/trainjob/children.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;

class Walk {
 public:
  explicit Walk(unsigned seed) : random_(seed) {
    if (pick(2)) world.object["spec"].set("suspend", true);
    if (pick(3) == 0) world.object["spec"].set("activeDeadlineSeconds", 300);
    if (pick(3) == 0)
      world.object["metadata"].set("labels", Json::object({{"kueue.x-k8s.io/queue-name", "lq"}}));
  }

  void step() {
    switch (pick(12)) {
      case 0:
        return world.set_spec("suspend", !world.job().is_suspended());
      case 1:
      case 2:
      case 3:
        return change_pod();
      case 4:
        return drop_pod();
      case 5:
        return change_jobset_status();
      case 6:
        return restart_jobset();
      case 7:
        world.jobset.reset();
        return;
      case 8:
        world.others.clear();
        return world.restart();
      case 9:
        return world.restart();
      case 10:
        return world.advance(std::chrono::seconds(pick(120)));
      default:
        if (pick(8) == 0) finish();
    }
  }

  World world;

 private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  std::int32_t attempt() const {
    return world.jobset && world.jobset->find("status")
               ? static_cast<std::int32_t>(world.jobset->find("status")->get_int("restarts"))
               : 0;
  }

  void change_pod() {
    PodSpec pod;
    pod.index = static_cast<std::int32_t>(pick(2));
    pod.attempt = attempt();
    pod.name = "p" + std::to_string(pod.index) + "-" + std::to_string(pod.attempt) + "-" +
               std::to_string(pick(2));
    const unsigned stage = pick(5);
    if (stage > 0) pod.node_name = "m";
    pod.phase = stage < 2 ? "Pending" : stage == 4 ? "Succeeded" : "Running";
    pod.is_ready = stage == 3 && pick(2);
    if (stage == 0) {
      pod.waiting_reason = "Unschedulable";
      pod.waiting_message = "0/1 nodes are available";
    } else if (stage == 1 && pick(2)) {
      pod.waiting_reason = "ErrImagePull";
    }
    world.put_pod(pod);
    if (pick(6) == 0) world.fail_pod(pod.name, static_cast<std::int32_t>(pick(3) + 1));
  }

  void drop_pod() {
    if (!world.pods.empty()) world.pods.erase(world.pods.begin());
  }

  Json status_with(int restarts) {
    Json node = Json::object({{"name", "node"}});
    for (const char* counter : {"ready", "succeeded", "failed", "active", "suspended"})
      node.set(counter, static_cast<int>(pick(2)));
    return Json::object({{"restarts", restarts},
                         {"replicatedJobsStatus", Json::array({node})},
                         {"conditions", Json::array()}});
  }

  void change_jobset_status() {
    if (world.jobset) world.set_jobset_status(status_with(attempt()));
  }

  void restart_jobset() {
    if (!world.jobset) return;
    Json status = status_with(attempt() + 1);
    status["conditions"].push_back(Json::object({{"type", "RestartingJobSet"},
                                                 {"status", pick(2) ? "True" : "False"},
                                                 {"reason", "DefaultFailurePolicy"},
                                                 {"message", "restarting"},
                                                 {"lastTransitionTime", world.now.to_string()}}));
    world.set_jobset_status(std::move(status));
  }

  void finish() {
    if (!world.jobset) return;
    Json status = status_with(attempt());
    status["conditions"].push_back(Json::object({{"type", pick(2) ? "Completed" : "Failed"},
                                                 {"status", "True"},
                                                 {"reason", "AllJobsCompleted"},
                                                 {"message", "over"},
                                                 {"lastTransitionTime", world.now.to_string()}}));
    world.set_jobset_status(std::move(status));
  }

  std::mt19937 random_;
};

const std::vector<std::string> kPhases = {"Queued",    "Initializing", "Pending",
                                          "Starting",  "Running",      "Restarting",
                                          "Suspended", "Complete",     "Failed"};

void check_quiet(World& world) {
  const int requests = world.requests;
  const TrainJobPlan plan = world.reconcile();
  CHECK(plan.actions.empty());
  CHECK_FALSE(plan.status_patch);
  CHECK(plan.events.empty());
  CHECK(world.requests == requests);
}

TEST_CASE("random lives") {
  int finished = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Walk walk(seed);
    World& world = walk.world;
    int endings = 0;
    std::string end;
    for (int i = 0; i < 30; ++i) {
      const bool was_finished = world.job().is_finished();
      const bool had_jobset = world.jobset.has_value();
      const auto events = world.settle();
      endings += static_cast<int>(std::count(events.begin(), events.end(), "Complete") +
                                  std::count(events.begin(), events.end(), "Failed"));
      check_quiet(world);

      const TrainJob job = world.job();
      CHECK(std::count(kPhases.begin(), kPhases.end(), job.status.phase) == 1);
      CHECK_FALSE(job.status.reason.empty());
      if (was_finished) {
        CHECK(world.jobset.has_value() <= had_jobset);
        CHECK(job.status.phase == end);
      }
      if (job.is_finished()) {
        end = job.status.phase;
        CHECK(job.status.completionTime);
        CHECK(endings == 1);
      } else {
        CHECK(world.jobset);
        CHECK(endings == 0);
        CHECK(job.is_suspended() == (*world.jobset).find("spec")->get_bool("suspend"));
      }
      walk.step();
    }
    finished += endings;
  }
  // Otherwise the walks would not say much about the end.
  CHECK(finished > 20);
}

}  // namespace
}  // namespace trainer::test
