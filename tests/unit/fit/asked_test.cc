// These tests check which pods a job has, by the objects that are rendered for it.
#include "runtimes/fit/asked.hh"

#include "tests/unit/fit/cluster.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;
using kube::Json;

namespace {

Json job_of(const std::string& role, const std::string& name, int pods) {
  Json made = job(name, pods);
  made["spec"]["template"]["metadata"]["labels"].set("jobset.sigs.k8s.io/replicatedjob-name", role);
  return made;
}

Json worker(int index, const std::string& more = "{}") {
  return with(yaml("{kind: Pod, metadata: {name: j-worker-" + std::to_string(index) +
                   ", namespace: ns, labels: {training.kubeflow.org/replica-type: worker, "
                   "training.kubeflow.org/replica-index: \"" +
                   std::to_string(index) + "\"}}, spec: {containers: [{name: c}]}}"),
              more);
}

}  // namespace

TEST_CASE("Jobs of one replicated job are one role", "[fit]") {
  const Asked asked =
      read_asked({job_of("node", "j-node-0", 2), job_of("node", "j-node-1", 2)}, {});
  REQUIRE(asked.roles.size() == 1);
  CHECK(asked.roles[0].name == "node");
  CHECK(asked.roles[0].pods == 4);
  CHECK(asked.ns == "ns");
  CHECK(asked.jobs == 2);
}

TEST_CASE("pods of one replica type are one role, unless they ask for other things", "[fit]") {
  const Asked asked =
      read_asked({worker(0), worker(1), worker(2, "{spec: {nodeSelector: {a: b}}}")}, {});
  REQUIRE(asked.roles.size() == 2);
  CHECK(asked.roles[0].pods == 2);
  CHECK(asked.roles[1].pods == 1);
}

TEST_CASE("a Job has no more pods at once than completions", "[fit]") {
  Json few = job("j", 4);
  few["spec"].set("completions", 3);
  CHECK(read_asked({few}, {}).roles[0].pods == 3);
}

TEST_CASE("pods that have a node are not asked for", "[fit]") {
  const std::vector<Json> running{
      yaml("{metadata: {name: j-0-x, labels: {batch.kubernetes.io/job-name: j}}, spec: {nodeName: "
           "a}, status: {phase: Running}}"),
      yaml("{metadata: {name: j-1-x, labels: {batch.kubernetes.io/job-name: j}}, status: {phase: "
           "Pending}}"),
      yaml("{metadata: {name: j-2-x, labels: {batch.kubernetes.io/job-name: j}}, spec: {nodeName: "
           "a}, status: {phase: Failed}}"),
      yaml("{metadata: {name: j-worker-0}, spec: {nodeName: a}, status: {phase: Running}}"),
  };
  const Asked asked = read_asked({job("j", 3), worker(0), worker(1)}, running);
  REQUIRE(asked.roles.size() == 2);
  CHECK(asked.roles[0].pods == 2);
  CHECK(asked.roles[0].made == 1);
  CHECK(asked.roles[1].pods == 1);
  CHECK(asked.jobs == 0);
  CHECK(asked.is_admitted);
}

TEST_CASE("pods that wait for the end of others run in a later stage", "[fit]") {
  const Json jobset = yaml(
      "{kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [{name: data}, {name: model}, "
      "{name: node, dependsOn: [{name: data, status: Complete}, {name: model, status: "
      "Complete}]}, {name: side, dependsOn: [{name: node, status: Ready}]}]}}");
  const Asked asked =
      read_asked({jobset, job_of("data", "j-data-0", 1), job_of("model", "j-model-0", 1),
                  job_of("node", "j-node-0", 4), job_of("side", "j-side-0", 1)},
                 {});
  CHECK(asked.stages == 2);
  CHECK(asked.pods_of_stage(0) == 2);
  CHECK(asked.pods_of_stage(1) == 5);
}

TEST_CASE("the gang and the queue are those of rendered objects", "[fit]") {
  const Asked asked = read_asked(
      {yaml("{kind: PodGroup, metadata: {name: j}, spec: {minMember: 3}}"),
       yaml("{kind: JobSet, metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}}}"),
       job("j", 3)},
      {});
  CHECK(asked.gang_minimum == 3);
  CHECK(asked.queue == "q");
}

TEST_CASE("what cannot be computed is said", "[fit]") {
  struct Case {
    const char* spec;
    const char* text;
  };
  const std::vector<Case> cases{
      {"{volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}",
       "VolumeBinding: which nodes reach the PersistentVolumeClaim data is not computed"},
      {"{volumes: [{name: d, ephemeral: {}}]}",
       "VolumeBinding: which nodes reach the volume d, whose claim is made with the pod, is not "
       "computed"},
      {"{resourceClaims: [{name: gpu}]}",
       "DynamicResources: whether devices are free for the claim gpu is not computed"},
      {"{schedulingGates: [{name: wait}]}",
       "SchedulingGates: the pod waits until the gate wait is removed"},
      {"{schedulerName: volcano}",
       "the scheduler volcano places the pod, by rules and queues of its own besides those of "
       "kube-scheduler"},
      {"{runtimeClassName: kata}",
       "the overhead and the node selector of RuntimeClass kata are not counted"},
      {"{priorityClassName: high}",
       "by its PriorityClass high the pod may preempt others, which is not counted"},
  };
  for (const Case& each : cases) {
    const Json pod = Json::object({{"spec", yaml(each.spec)}});
    CHECK(PodRequest::read(pod, "ns").undecided == std::vector<std::string>{each.text});
  }
  CHECK(PodRequest::read(yaml("{spec: {runtimeClassName: kata, overhead: {cpu: 1}}}"), "ns")
            .undecided.empty());
}
