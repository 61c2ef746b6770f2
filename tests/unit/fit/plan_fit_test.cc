// These tests check the answers of a plan: where pods go, what is missing, and what would help.
#include "runtimes/fit/plan_fit.hh"

#include "tests/unit/fit/cluster.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;
using kube::Json;

namespace {

TestCluster four() {
  TestCluster cluster;
  for (const char* name : {"a", "b", "c", "d"})
    cluster.node(name, "{metadata: {labels: {pool: p}}}");
  return cluster;
}

TestCluster with_job(TestCluster cluster, const std::string& job, const std::string& node,
                     int devices, const std::string& since = "2026-11-01T00:00:00Z") {
  cluster.pod(job, node,
              "{metadata: {labels: {jobset.sigs.k8s.io/jobset-name: " + job +
                  "}, creationTimestamp: \"" + since +
                  "\"}, spec: {containers: [{name: c, resources: {requests: {nvidia.com/gpu: " +
                  std::to_string(devices) + "}}}]}}");
  return cluster;
}

Reason reason_of(const TestCluster& cluster, const std::vector<Json>& objects) {
  const PlanAnswer answer = cluster.plan(objects);
  REQUIRE(answer.reasons.size() == 1);
  return answer.reasons[0];
}

}  // namespace

TEST_CASE("pods that fit are spread over nodes", "[fit]") {
  const PlanAnswer answer = four().plan({job("j", 4, asks("{cpu: 2, nvidia.com/gpu: 2}"))});
  CHECK(answer.verdict == Verdict::kFits);
  CHECK(answer.pods == 4);
  CHECK(answer.devices == decltype(answer.devices){{"nvidia.com/gpu", 8}});
  REQUIRE(answer.nodes.size() == 4);
  CHECK(answer.nodes[0].pods == 1);
  REQUIRE(answer.nodes[0].resources.size() == 2);
  CHECK(answer.nodes[0].resources[0].used == "2");
  CHECK(answer.nodes[0].resources[1].resource == "nvidia.com/gpu");
  CHECK(answer.nodes[0].resources[1].allocatable == "4");
}

TEST_CASE("never is said only if it is certain", "[fit]") {
  // Three roles, of which no order of choice one by one finds the packing.
  TestCluster cluster;
  cluster.node("a", "{status: {allocatable: {cpu: 10}}}")
      .node("b", "{status: {allocatable: {cpu: 10}}}")
      .node("c", "{status: {allocatable: {cpu: 20}}}");
  CHECK(cluster
            .plan({job("two", 2, asks("{cpu: 4}")), job("four", 4, asks("{cpu: 3}")),
                   job("one", 1, asks("{cpu: 20}"))})
            .verdict != Verdict::kNever);
  CHECK(cluster
            .plan({job("two", 2, asks("{cpu: 4}")), job("four", 4, asks("{cpu: 3}")),
                   job("one", 1, asks("{cpu: 21}"))})
            .verdict == Verdict::kNever);
}

TEST_CASE("pods near each other choose any zone", "[fit]") {
  TestCluster cluster;
  for (const char* name : {"a1", "a2", "b1", "b2", "b3", "b4"})
    cluster.node(name, std::string("{metadata: {labels: {zone: ") + name[0] + "}}}");
  const auto near = [](int pods) {
    return job("j", pods,
               "{metadata: {labels: {app: j}}, spec: {affinity: {podAffinity: "
               "{requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: "
               "{app: j}}, topologyKey: zone}]}}, containers: [{name: c, resources: {requests: "
               "{nvidia.com/gpu: 4}}}]}}");
  };
  CHECK(cluster.plan({near(4)}).verdict != Verdict::kNever);
  CHECK(cluster.plan({near(5)}).verdict == Verdict::kNever);
}

TEST_CASE("a role may be near one that is placed after it", "[fit]") {
  TestCluster cluster;
  cluster.node("a", "{metadata: {labels: {zone: z}}}");
  const Json launcher =
      job("launcher", 1,
          "{spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
          "[{labelSelector: {matchLabels: {app: w}}, topologyKey: zone}]}}}}");
  CHECK(cluster.plan({launcher, job("w", 1, "{metadata: {labels: {app: w}}}")}).verdict ==
        Verdict::kFits);
}

TEST_CASE("numbers without sense do not wrap", "[fit]") {
  TestCluster cluster;
  cluster.node("a");
  CHECK(cluster.plan({job("j", 2, asks("{memory: 9223372036854775807}"))}).verdict ==
        Verdict::kNever);
}

TEST_CASE("large pods after small ones find a place by packing", "[fit]") {
  TestCluster cluster;
  cluster.node("a").node("b");
  const PlanAnswer answer = cluster.plan(
      {job("small", 2, asks("{nvidia.com/gpu: 1}")), job("large", 1, asks("{nvidia.com/gpu: 4}"))});
  CHECK(answer.verdict == Verdict::kFits);
  CHECK(answer.undecided ==
        std::vector<std::string>{"the pods fit if they are packed, the largest first; "
                                 "kube-scheduler may spread small ones so that a large one finds "
                                 "no node"});
}

TEST_CASE("the reason of a job that waits names what is free, and who has the rest", "[fit]") {
  const TestCluster cluster = with_job(with_job(four(), "young", "a", 2, "2026-11-03T00:00:00Z"),
                                       "old", "b", 4, "2026-11-02T00:00:00Z");
  const PlanAnswer answer = cluster.plan({job("j", 4, asks("{nvidia.com/gpu: 4}"))});
  CHECK(answer.verdict == Verdict::kWaits);
  REQUIRE(answer.reasons.size() == 1);
  const Reason& reason = answer.reasons[0];
  CHECK(reason.message ==
        "10 of 16 nvidia.com/gpu are free on 4 nodes that the pods may go to; 4 pods ask for 16");
  CHECK(reason.change == "2 of 4 pods fit now");
  REQUIRE(reason.holders.size() == 2);
  CHECK(reason.holders[0].by.name == "old");
  CHECK(reason.holders[0].amount == "4 nvidia.com/gpu");
  CHECK(reason.holders[1].by.name == "young");
}

TEST_CASE("devices that are free on too many nodes are said to be", "[fit]") {
  TestCluster cluster = four();
  for (const char* node : {"a", "b", "c", "d"}) cluster = with_job(cluster, "old", node, 2);
  const Reason reason = reason_of(cluster, {job("j", 1, asks("{nvidia.com/gpu: 4}"))});
  CHECK(reason.message ==
        "8 of 16 nvidia.com/gpu are free on 4 nodes that the pods may go to; 1 pod asks for 4, 4 "
        "each, and no node has so much left");
}

TEST_CASE("the reason of pods that are too wide names the widest node, and what would fit",
          "[fit]") {
  const Reason reason = reason_of(four(), {job("j", 2, asks("{nvidia.com/gpu: 8}"))});
  CHECK(reason.message ==
        "a pod asks for 8 nvidia.com/gpu, and of 4 nodes that it may go to the widest has 4");
  CHECK(reason.change == "4 pods with 4 nvidia.com/gpu each fit now");
}

TEST_CASE("pods that are too wide, and too many, name the most that would fit", "[fit]") {
  const TestCluster cluster = with_job(four(), "old", "a", 1);
  CHECK(reason_of(cluster, {job("j", 2, asks("{nvidia.com/gpu: 8}"))}).change ==
        "4 pods with 4 nvidia.com/gpu each fit once others have ended");
  CHECK(reason_of(cluster, {job("j", 3, asks("{nvidia.com/gpu: 8}"))}).change ==
        "at most 4 pods with 4 nvidia.com/gpu each fit once others have ended");
}

TEST_CASE("the reason of too many pods names how many fit", "[fit]") {
  const Reason reason = reason_of(four(), {job("j", 6, asks("{nvidia.com/gpu: 4}"))});
  CHECK(reason.message ==
        "16 nvidia.com/gpu are all that 4 nodes have that the pods may go to; 6 pods ask for 24");
  CHECK(reason.change == "4 of 6 pods fit once others have ended");
}

TEST_CASE("the reason of a selector that matches no node names the values that nodes have",
          "[fit]") {
  const Reason reason = reason_of(four(), {job("j", 1, "{spec: {nodeSelector: {pool: q}}}")});
  CHECK(reason.rule == "NodeAffinity");
  CHECK(reason.message == "the nodeSelector pool=q matches none of 4 nodes");
  CHECK(reason.change == "on these nodes pool is p (4 nodes)");
}

TEST_CASE("earlier rules are counted in the message of the last one", "[fit]") {
  TestCluster cluster = four();
  cluster.node("e",
               "{spec: {taints: [{key: x, effect: NoSchedule}]}, status: {allocatable: "
               "{nvidia.com/gpu: 8}}}");
  const Reason reason = reason_of(cluster, {job("j", 1, asks("{nvidia.com/gpu: 8}"))});
  CHECK(reason.rule == "NodeResourcesFit");
  CHECK(reason.message ==
        "a pod asks for 8 nvidia.com/gpu, and of 4 nodes that it may go to the widest has 4 (left "
        "out before: 1 node by TaintToleration)");
}

TEST_CASE("a cluster without nodes is said to have none", "[fit]") {
  CHECK(reason_of(TestCluster(), {job("j", 1)}).message == "the cluster has no nodes");
}

TEST_CASE("stages are planned one after the other", "[fit]") {
  const Json jobset = yaml(
      "{kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [{name: data}, {name: node, "
      "dependsOn: [{name: data, status: Complete}]}]}}");
  Json data = job("data", 4, asks("{nvidia.com/gpu: 4}"));
  Json node = job("node", 4, asks("{nvidia.com/gpu: 4}"));
  for (Json* each : {&data, &node})
    (*each)["spec"]["template"]["metadata"]["labels"].set("jobset.sigs.k8s.io/replicatedjob-name",
                                                          (*each)["metadata"].get_string("name"));
  CHECK(four().verdict({jobset, data, node}) == "now");
  CHECK(four().verdict({data, node}) == "never NodeResourcesFit");
}

TEST_CASE("what could not be read narrows the answer", "[fit]") {
  const Asked asked = read_asked({job("j", 1)}, {});
  Snapshot snapshot = four().snapshot(asked);
  snapshot.pods_unread = "forbidden";
  PlanAnswer answer = plan_fit(asked, snapshot);
  CHECK(answer.verdict == Verdict::kUnknown);
  CHECK(answer.undecided == std::vector<std::string>{"pods: forbidden, so nodes were compared as "
                                                     "if nothing ran on them"});
  Snapshot nothing;
  nothing.nodes_unread = "forbidden";
  answer = plan_fit(asked, nothing);
  CHECK(answer.verdict == Verdict::kUnknown);
  CHECK(answer.undecided ==
        std::vector<std::string>{"nodes: forbidden, so only quotas were compared"});
}

TEST_CASE("nodes that the user does not mean are no reason", "[fit]") {
  TestCluster cluster = four();
  cluster.node("e",
               "{metadata: {labels: {pool: q}}, spec: {taints: [{key: "
               "node.kubernetes.io/unreachable, effect: NoSchedule}]}}");
  const Reason reason = reason_of(cluster, {job("j", 1, "{spec: {nodeSelector: {pool: q}}}")});
  CHECK(reason.message ==
        "1 node has the taint node.kubernetes.io/unreachable:NoSchedule, which the pods do not "
        "tolerate (left out before: 4 nodes by NodeAffinity)");
  CHECK(reason.change == "`kubectl describe node` says what they lack");
}

TEST_CASE("a queue that cannot be read leaves the answer open", "[fit]") {
  TestCluster cluster;
  cluster.node("n");
  const Asked asked = read_asked({job("j", 1)}, {});
  Snapshot snapshot = cluster.snapshot(asked);
  snapshot.queue_unread = {"ClusterQueue", "ClusterQueue cq: forbidden", false};
  const PlanAnswer unread = plan_fit(asked, snapshot);
  CHECK(unread.verdict == Verdict::kUnknown);
  REQUIRE(unread.reasons.size() == 1);
  CHECK(unread.reasons[0].rule == "ClusterQueue");
  CHECK(unread.reasons[0].message == "ClusterQueue cq: forbidden");
  snapshot.queue_unread = {"LocalQueue", "LocalQueue ns/q: not found", true};
  CHECK(plan_fit(asked, snapshot).verdict == Verdict::kWaits);
  CHECK(plan_fit(asked, snapshot).nodes.empty());
}
