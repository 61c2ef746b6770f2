// These tests check which pods start on one machine, and what the conditions of the others say.
#include "runtimes/batch/scheduling.hh"

#include <fmt/format.h>

#include <algorithm>

#include "tests/unit/batch/world.hh"

using namespace trainer::batch;
using namespace trainer::batch::test;
using kube::Json;
using trainer::JobView;

namespace {

constexpr const char* kNoVictims =
    " preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
constexpr const char* kNotHelpful =
    " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";

// A machine with pods and the Jobs of JobSets.
struct Machine {
  explicit Machine(std::string_view allocatable = "{cpu: 2, memory: 1Gi}") {
    node = with(yaml("{metadata: {name: local}}"),
                fmt::format("{{status: {{allocatable: {}}}}}", allocatable));
  }

  // A pod "NAME"; `more` is merged into it. Later ones are younger.
  Json& pod(const std::string& name, std::string_view more = "{}") {
    Json made = yaml("{spec: {containers: [{name: c}]}, status: {phase: Pending}}");
    made["metadata"]
        .set("name", name)
        .set("namespace", "ns")
        .set("uid", "uid-" + name)
        .set("resourceVersion", "1")
        .set("creationTimestamp", kube::Time::from_seconds(++age).to_string());
    pods.push_back(with(std::move(made), more));
    return pods.back();
  }
  // A pod of JobSet `jobset`, whose Job has the uid JOBSET-job.
  Json& member(const std::string& jobset, const std::string& name, std::string_view more = "{}") {
    Json& made = pod(name, more);
    made["metadata"]["labels"]
        .set("jobset.sigs.k8s.io/jobset-name", jobset)
        .set("jobset.sigs.k8s.io/replicatedjob-name", "node")
        .set("jobset.sigs.k8s.io/replicatedjob-replicas", "1");
    made["metadata"].set(
        "ownerReferences",
        yaml(fmt::format("[{{apiVersion: batch/v1, kind: Job, name: {0}-node-0, uid: {0}-job, "
                         "controller: true}}]",
                         jobset)));
    return made;
  }
  JobView& job(const std::string& jobset, std::int32_t count) {
    JobView made;
    made.ns = "ns";
    made.name = jobset + "-node-0";
    made.uid = jobset + "-job";
    made.owner_uid = jobset + "-uid";
    made.replicated_job = "node";
    made.parallelism = made.completions = count;
    jobs.push_back(made);
    return jobs.back();
  }

  std::vector<std::shared_ptr<BatchPodView>> views;
  std::vector<PodPlan> plans() {
    views.clear();
    for (const Json& each : pods) views.push_back(view_pod(each));
    SchedulerInput observed;
    if (!node.is_null()) observed.node = view_node(node);
    for (const auto& view : views) observed.pods.push_back(view.get());
    for (const JobView& each : jobs) observed.jobs.push_back(&each);
    observed.now = kube::Time::from_seconds(1'800'000'000);
    return schedule(observed);
  }
  // "a b" in order of names: the pods that get the node now; they have it afterwards.
  std::string start() {
    std::vector<std::string> started;
    for (const PodPlan& each : plans()) {
      if (each.plan.actions.empty()) continue;
      started.push_back(each.pod->name);
      for (Json& one : pods)
        if (one.get("metadata").get_string("name") == each.pod->name)
          one["spec"].set("nodeName", "local");
    }
    std::sort(started.begin(), started.end());
    return fmt::format("{}", fmt::join(started, " "));
  }
  // Returns the message of the condition of a pod that waits; "" if it starts, or there is none.
  std::string message(std::string_view name) {
    for (const PodPlan& each : plans())
      if (each.pod->name == name && each.plan.actions.empty())
        return each.plan.events.front().message;
    return {};
  }
  void end(std::string_view name) {
    for (Json& one : pods)
      if (one.get("metadata").get_string("name") == name) one["status"].set("phase", "Succeeded");
  }

  Json node;
  std::vector<Json> pods;
  std::vector<JobView> jobs;
  std::int64_t age = 0;
};

std::string requests(std::string_view resources) {
  return fmt::format("{{spec: {{containers: [{{name: c, resources: {{requests: {}}}}}]}}}}",
                     resources);
}

}  // namespace

TEST_CASE("a pod gets the node: its condition first, then the node, then the event") {
  Machine machine;
  machine.pod("a");
  const auto plans = machine.plans();
  REQUIRE(plans.size() == 1);
  const kube::Plan& plan = plans.front().plan;
  CHECK(plan.is_status_first());
  CHECK(*plan.status_patch ==
        yaml("{status: {conditions: [{type: PodScheduled, status: 'True', lastProbeTime: null, "
             "lastTransitionTime: '2027-01-15T08:00:00Z'}]}}"));
  REQUIRE(plan.actions.size() == 1);
  CHECK(plan.actions.front().body == yaml("{metadata: {uid: uid-a}, spec: {nodeName: local}}"));
  CHECK(plan.events.front().reason == "Scheduled");
  CHECK(plan.events.front().message == "Successfully assigned ns/a to local");
  CHECK(machine.start() == "a");
  CHECK(machine.plans().empty());
}

TEST_CASE("what the condition of one pod says") {
  struct Row {
    const char* name;
    const char* allocatable;
    std::string pod;
    std::string message;
  };
  for (const Row& row : {
           Row{"fits", "{cpu: 2}", requests("{cpu: 2}"), ""},
           Row{"more CPU than there is", "{cpu: 2}", requests("{cpu: 2001m}"),
               std::string("0/1 nodes are available: 1 Insufficient cpu.") + kNotHelpful},
           Row{"two resources", "{cpu: 2, memory: 1Gi}", requests("{cpu: 3, memory: 2Gi}"),
               std::string("0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.") +
                   kNotHelpful},
           Row{"a resource that the node lacks", "{cpu: 2}", requests("{nvidia.com/gpu: 1}"),
               std::string("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.") +
                   kNotHelpful},
           Row{"none of a resource that the node lacks", "{cpu: 2}",
               requests("{nvidia.com/gpu: 0}"), ""},
           Row{"no pod at all", "{cpu: 2, pods: 0}", "{}",
               std::string("0/1 nodes are available: 1 Too many pods.") + kNotHelpful},
           Row{"limits count as requests", "{cpu: 2}",
               "{spec: {containers: [{name: c, resources: {limits: {cpu: 3}}}]}}",
               std::string("0/1 nodes are available: 1 Insufficient cpu.") + kNotHelpful},
           Row{"gated", "{cpu: 2}", "{spec: {schedulingGates: [{name: g}]}}",
               "Scheduling is blocked due to non-empty scheduling gates"},
           Row{"deleted before it has a node", "{cpu: 2}",
               "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}", ""},
       }) {
    INFO(row.name);
    Machine machine(row.allocatable);
    machine.pod("a", row.pod);
    CHECK(machine.message("a") == row.message);
  }
}

TEST_CASE("the condition of a pod that waits is written once, and keeps its time") {
  Machine machine("{cpu: 1}");
  Json& pod = machine.pod("a", requests("{cpu: 2}"));
  auto plans = machine.plans();
  REQUIRE(plans.size() == 1);
  CHECK(plans.front().plan.events.front().type == "Warning");
  CHECK(plans.front().plan.events.front().reason == "FailedScheduling");
  Json condition = plans.front().plan.status_patch->get("status").get_array("conditions").front();
  CHECK(condition.get_string("reason") == "Unschedulable");
  CHECK(condition.get_string("status") == "False");
  condition.set("lastTransitionTime", "2026-01-01T00:00:00Z");
  pod["status"].set("conditions", Json::array({yaml("{type: Own, status: 'True'}"), condition}));
  CHECK(machine.plans().empty());
  machine.node["spec"].set("unschedulable", true);
  plans = machine.plans();
  REQUIRE(plans.size() == 1);
  const Json& changed = plans.front().plan.status_patch->get("status").get("conditions");
  CHECK(changed.size() == 2);
  CHECK(find_condition(changed, "PodScheduled").get_string("lastTransitionTime") ==
        "2026-01-01T00:00:00Z");
  CHECK(find_condition(changed, "PodScheduled").get_string("message") ==
        std::string("0/1 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.") +
            kNotHelpful);
}

TEST_CASE("without a node every pod waits") {
  Machine machine;
  machine.node = nullptr;
  machine.pod("a");
  CHECK(machine.message("a") == "no nodes available to schedule pods");
}

TEST_CASE("requests never exceed the node, and who fits does not wait for who does not") {
  Machine machine("{cpu: 4, pods: 3}");
  machine.pod("a", requests("{cpu: 3}"));
  machine.pod("b", requests("{cpu: 2}"));
  machine.pod("c", requests("{cpu: 1}"));
  CHECK(machine.start() == "a c");
  CHECK(machine.message("b") ==
        std::string("0/1 nodes are available: 1 Insufficient cpu.") + kNoVictims);
  machine.end("a");
  CHECK(machine.start() == "b");
  machine.pod("d", requests("{cpu: 1}"));
  machine.pod("e", requests("{cpu: '0'}"));
  CHECK(machine.start() == "d");
  CHECK(machine.message("e") ==
        std::string("0/1 nodes are available: 1 Too many pods.") + kNoVictims);
}

TEST_CASE("pods that request no CPU count as one side by side, but never limit one group's size") {
  Machine machine("{cpu: 2}");
  for (const char* name : {"a-0", "a-1", "a-2", "a-3"}) machine.member("a", name);
  machine.member("b", "b-0");
  machine.job("a", 4);
  machine.job("b", 1);
  CHECK(machine.start() == "a-0 a-1 a-2 a-3");
  CHECK(machine.message("b-0") ==
        std::string("0/1 nodes are available: 1 Insufficient cpu.") + kNoVictims);
  for (const char* name : {"a-0", "a-1", "a-2"}) machine.end(name);
  CHECK(machine.start() == "b-0");
  machine.pod("c");
  CHECK(machine.message("c") ==
        std::string("0/1 nodes are available: 1 Insufficient cpu.") + kNoVictims);
}

TEST_CASE("a pod that requests no CPU waits while the others request all of them") {
  Machine machine("{cpu: 2}");
  machine.pod("all", requests("{cpu: 2}"));
  CHECK(machine.start() == "all");
  machine.pod("none");
  CHECK(machine.start() == "");
  CHECK(machine.message("none") ==
        std::string("0/1 nodes are available: 1 Insufficient cpu.") + kNoVictims);
  machine.end("all");
  CHECK(machine.start() == "none");
}

TEST_CASE("of a JobSet all pods start or none") {
  Machine machine("{cpu: 4}");
  machine.pod("first", requests("{cpu: 1}"));
  CHECK(machine.start() == "first");
  machine.member("a", "a-0", requests("{cpu: 2}"));
  machine.member("a", "a-1", requests("{cpu: 2}"));
  machine.job("a", 2);
  CHECK(machine.start() == "");
  CHECK(machine.message("a-1") ==
        std::string("0/1 nodes are available: 1 Insufficient cpu.") + kNoVictims +
            " The 2 pods of JobSet a start together: they request 4 cpu of 4.");
  machine.end("first");
  CHECK(machine.start() == "a-0 a-1");
}

TEST_CASE("a JobSet waits until all its pods exist, and says nothing meanwhile") {
  Machine machine("{cpu: 8}");
  machine.member("a", "a-0");
  CHECK(machine.plans().empty());  // its Job is not known yet
  machine.job("a", 2);
  CHECK(machine.plans().empty());
  machine.member("a", "a-1");
  SECTION("both are there") {
    CHECK(machine.start() == "a-0 a-1");
    // One that is made again starts alone.
    machine.end("a-0");
    machine.member("a", "a-2");
    CHECK(machine.start() == "a-2");
  }
  SECTION("another Job of the replicated job is missing") {
    for (Json& pod : machine.pods)
      pod["metadata"]["labels"].set("jobset.sigs.k8s.io/replicatedjob-replicas", "2");
    CHECK(machine.plans().empty());
  }
  SECTION("a Job of another replicated job has not begun") {
    JobView& later = machine.job("a", 3);
    later.uid = "later";
    later.replicated_job = "later";
    CHECK(machine.plans().empty());
    later.is_suspended = true;
    CHECK(machine.start() == "a-0 a-1");
  }
  SECTION("its Job ends") {
    machine.jobs.front().failure_target = kube::Condition{};
    CHECK(machine.plans().empty());
  }
  SECTION("an index of its Job has failed for good") {
    machine.jobs.front().parallelism = machine.jobs.front().completions = 3;
    machine.jobs.front().failed = 1;
    CHECK(machine.start() == "a-0 a-1");
  }
}

TEST_CASE("what runs in part gets what it lacks before others") {
  Machine machine("{cpu: 4}");
  machine.member("old", "old-0", requests("{cpu: 2}"));
  machine.member("part", "part-0", requests("{cpu: 2}"))["spec"].set("nodeName", "local");
  machine.member("part", "part-1", requests("{cpu: 2}"));
  machine.job("old", 1);
  machine.job("part", 2);
  CHECK(machine.start() == "part-1");
}

TEST_CASE("ports of the machine are held by one JobSet at a time") {
  const std::string port =
      "{spec: {containers: [{name: c, resources: {requests: {cpu: 1m}}, ports: [{containerPort: "
      "29500}]}]}}";
  const auto fill = [&port](Machine& machine, std::string_view more) {
    for (const char* name : {"a-0", "a-1"}) {
      Json& pod = machine.member("a", name, port);
      pod = with(pod, more);
    }
    Json& pod = machine.member("b", "b-0", port);
    pod = with(pod, more);
    machine.job("a", 2);
    machine.job("b", 1);
  };
  const std::string taken =
      std::string(
          "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod "
          "ports.") +
      kNoVictims;
  SECTION("each pod has ports of its own") {
    Machine machine;
    fill(machine, "{}");
    CHECK(machine.start() == "a-0 a-1 b-0");
  }
  SECTION("the node shares its ports") {
    Machine machine;
    machine.node["metadata"].set("labels", yaml("{trainer.kubeflow.org/shared-ports: 'true'}"));
    fill(machine, "{}");
    CHECK(machine.start() == "a-0 a-1");
    CHECK(machine.message("b-0") == taken);
    // The next attempt of the same JobSet waits for the end of the one before.
    for (const std::size_t i : {0U, 1U})
      machine.pods[i]["metadata"].set("deletionTimestamp", "2026-01-01T00:00:00Z");
    for (const char* name : {"a-2", "a-3"}) machine.member("a", name, port);
    CHECK(machine.start() == "");
    machine.end("a-0");
    machine.end("a-1");
    CHECK(machine.start() == "b-0");
  }
  SECTION("pods on the host's network") {
    Machine machine;
    fill(machine, "{spec: {hostNetwork: true}}");
    CHECK(machine.start() == "a-0 a-1");
    CHECK(machine.message("b-0") == taken);
  }
}

TEST_CASE("many jobs on two CPUs all run, never above them") {
  Machine machine("{cpu: 2}");
  for (int i = 0; i < 50; ++i) {
    const std::string name = fmt::format("j{:02}", i);
    machine.job(name, 2);
    for (int k = 0; k < 2; ++k) machine.member(name, fmt::format("{}-{}", name, k));
  }
  for (int i = 0; i < 50; ++i) {
    CHECK(machine.start() == fmt::format("j{0:02}-0 j{0:02}-1", i));
    for (int k = 0; k < 2; ++k) machine.end(fmt::format("j{:02}-{}", i, k));
  }
}
