// These tests check each filter of kube-scheduler by what a plan answers.
#include <string>
#include <vector>

#include "tests/unit/fit/cluster.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

namespace {

struct Case {
  std::string what;
  TestCluster cluster;
  std::string pod;
  int pods;
  std::string verdict;
};

void check(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    INFO(each.what);
    CHECK(each.cluster.verdict({job("j", each.pods, each.pod)}) == each.verdict);
  }
}

TestCluster two() {
  TestCluster cluster;
  cluster.node("a", "{metadata: {labels: {zone: one}}}");
  cluster.node("b", "{metadata: {labels: {zone: two}}}");
  return cluster;
}

// A pod with this label is on a node.
TestCluster with_pod(const std::string& label, const std::string& more = "{}") {
  TestCluster cluster = two();
  cluster.pod("p", "a", more);
  if (!label.empty()) cluster.pod("q", "a", "{metadata: {labels: {app: " + label + "}}}");
  return cluster;
}

std::string spread(const std::string& more) {
  return "{metadata: {labels: {app: x}}, spec: {topologySpreadConstraints: [{maxSkew: 1, "
         "whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}, " +
         more + "}]}}";
}

std::string affinity(const std::string& kind, const std::string& more = "") {
  return "{metadata: {labels: {app: x}}, spec: {affinity: {" + kind +
         ": {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: "
         "{matchLabels: {app: x}}" +
         more + "}]}}}}";
}

}  // namespace

TEST_CASE("NodeUnschedulable", "[fit]") {
  TestCluster cordoned;
  cordoned.node("a", "{spec: {unschedulable: true}}");
  check({
      {"a cordoned node", cordoned, "{}", 1, "never NodeUnschedulable"},
      {"a toleration of it", cordoned,
       "{spec: {tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]}}", 1,
       "now"},
  });
}

TEST_CASE("TaintToleration", "[fit]") {
  const auto tainted = [](const std::string& taint) {
    return TestCluster().node("a", "{spec: {taints: [" + taint + "]}}");
  };
  const auto tolerates = [](const std::string& toleration) {
    return "{spec: {tolerations: [" + toleration + "]}}";
  };
  const TestCluster gpu = tainted("{key: gpu, value: on-demand, effect: NoSchedule}");
  check({
      {"no toleration", gpu, "{}", 1, "never TaintToleration"},
      {"equal", gpu, tolerates("{key: gpu, value: on-demand}"), 1, "now"},
      {"another value", gpu, tolerates("{key: gpu, value: spot}"), 1, "never TaintToleration"},
      {"exists", gpu, tolerates("{key: gpu, operator: Exists}"), 1, "now"},
      {"another effect", gpu, tolerates("{key: gpu, operator: Exists, effect: NoExecute}"), 1,
       "never TaintToleration"},
      {"all taints", gpu, tolerates("{operator: Exists}"), 1, "now"},
      {"only preferred", tainted("{key: gpu, effect: PreferNoSchedule}"), "{}", 1, "now"},
      {"each pod tolerates it", tainted("{key: node.kubernetes.io/not-ready, effect: NoExecute}"),
       "{}", 1, "now"},
      {"a node that is not ready",
       tainted("{key: node.kubernetes.io/not-ready, effect: NoSchedule}"), "{}", 1,
       "never TaintToleration"},
  });
}

TEST_CASE("NodeAffinity", "[fit]") {
  const auto terms = [](const std::string& text) {
    return "{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
           "{nodeSelectorTerms: [" +
           text + "]}}}}}";
  };
  check({
      {"selector", two(), "{spec: {nodeSelector: {zone: one}}}", 1, "now"},
      {"selector of nothing", two(), "{spec: {nodeSelector: {zone: three}}}", 1,
       "never NodeAffinity"},
      {"in", two(), terms("{matchExpressions: [{key: zone, operator: In, values: [two]}]}"), 1,
       "now"},
      {"one of two terms", two(),
       terms("{matchExpressions: [{key: zone, operator: In, values: [x]}]}, {matchFields: [{key: "
             "metadata.name, operator: In, values: [b]}]}"),
       1, "now"},
      {"empty term", two(), terms("{}"), 1, "never NodeAffinity"},
      {"no term", two(), terms(""), 1, "never NodeAffinity"},
  });
}

TEST_CASE("NodePorts", "[fit]") {
  const std::string port = "{spec: {containers: [{name: c, ports: [{hostPort: 80}]}]}}";
  const TestCluster used = with_pod("",
                                    "{spec: {containers: [{name: c, ports: [{hostPort: 80, "
                                    "hostIP: 10.0.0.1}]}]}}");
  check({
      {"one a node", two(), port, 2, "now"},
      {"three for two", two(), port, 3, "never NodePorts"},
      {"one is used", used, port, 2, "waits NodePorts"},
      {"in the node's network", two(),
       "{spec: {hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]}}", 3,
       "never NodePorts"},
      {"another protocol", used,
       "{spec: {containers: [{name: c, ports: [{hostPort: 80, protocol: UDP}]}]}}", 2, "now"},
      {"another address", used,
       "{spec: {containers: [{name: c, ports: [{hostPort: 80, hostIP: 10.0.0.2}]}]}}", 2, "now"},
  });
}

TEST_CASE("NodeResourcesFit", "[fit]") {
  const TestCluster half = with_pod(
      "", "{spec: {containers: [{name: c, resources: {requests: {cpu: 6, nvidia.com/gpu: 3}}}]}}");
  check({
      {"no requests", two(), "{}", 220, "now"},
      {"too many pods", two(), "{}", 221, "never NodeResourcesFit"},
      {"all devices", two(), asks("{nvidia.com/gpu: 4}"), 2, "now"},
      {"devices of limits", two(),
       "{spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]}}", 3,
       "never NodeResourcesFit"},
      {"some are used", half, asks("{nvidia.com/gpu: 4}"), 2, "waits NodeResourcesFit"},
      {"what is left", half, asks("{nvidia.com/gpu: 1, cpu: 2}"), 5, "now"},
      {"more than is left", half, asks("{nvidia.com/gpu: 1, cpu: 2}"), 6, "waits NodeResourcesFit"},
      {"too wide", two(), asks("{nvidia.com/gpu: 8}"), 1, "never NodeResourcesFit"},
      {"CPUs are rounded up to milli", two(), asks("{cpu: 7.9999}"), 2, "now"},
      {"a resource that no node has", two(), asks("{example.com/x: 1}"), 1,
       "never NodeResourcesFit"},
      {"an init container", two(),
       "{spec: {initContainers: [{name: i, resources: {requests: {cpu: 9}}}]}}", 1,
       "never NodeResourcesFit"},
      {"a sidecar is added", two(),
       "{spec: {initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: "
       "4}}}], containers: [{name: c, resources: {requests: {cpu: 5}}}]}}",
       1, "never NodeResourcesFit"},
      {"the overhead is added", two(), "{spec: {overhead: {cpu: 9}}}", 1, "never NodeResourcesFit"},
      {"pods of a DaemonSet stay",
       with_pod("",
                "{metadata: {ownerReferences: [{kind: DaemonSet, name: d, controller: true}]}, "
                "spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"),
       asks("{cpu: 8}"), 2, "never NodeResourcesFit"},
      {"a pod that has ended",
       with_pod("",
                "{spec: {containers: [{name: c, resources: {requests: "
                "{cpu: 8}}}]}, status: {phase: Succeeded}}"),
       asks("{cpu: 8}"), 2, "now"},
  });
}

TEST_CASE("PodTopologySpread", "[fit]") {
  TestCluster one_full = two();
  one_full.node("c", "{metadata: {labels: {zone: three}}, status: {allocatable: {pods: 1}}}");
  check({
      {"even", two(), spread("topologyKey: zone"), 4, "now"},
      {"one zone is full", one_full, spread("topologyKey: zone"), 5, "now"},
      {"one zone is full, and pods remain", one_full, spread("topologyKey: zone"), 6,
       "never PodTopologySpread"},
      {"nodes without the key do not count", two(), spread("topologyKey: rack"), 1,
       "never PodTopologySpread"},
      {"pods that run count", with_pod("x"), spread("topologyKey: zone"), 1, "now"},
      {"too few domains", two(), spread("topologyKey: zone, minDomains: 3"), 2, "now"},
      {"too few domains for more", two(), spread("topologyKey: zone, minDomains: 3"), 3,
       "never PodTopologySpread"},
      {"another selector", two(),
       "{metadata: {labels: {app: y}}, spec: {topologySpreadConstraints: [{maxSkew: 1, "
       "topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}",
       9, "now"},
      {"only wished for", one_full,
       "{metadata: {labels: {app: x}}, spec: {topologySpreadConstraints: [{maxSkew: 1, "
       "topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: "
       "x}}}]}}",
       20, "now"},
  });
}

TEST_CASE("InterPodAffinity", "[fit]") {
  const std::string refusing =
      "{spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
      "[{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}}}";
  check({
      {"apart", two(), affinity("podAntiAffinity"), 2, "now"},
      {"apart, too many", two(), affinity("podAntiAffinity"), 3, "never InterPodAffinity"},
      {"apart from one that runs", with_pod("x"), affinity("podAntiAffinity"), 2,
       "waits InterPodAffinity"},
      {"of another namespace", with_pod("x"),
       affinity("podAntiAffinity", ", namespaces: [elsewhere]"), 2, "now"},
      {"together", two(), affinity("podAffinity"), 3, "now"},
      {"together is too much", two(),
       "{metadata: {labels: {app: x}}, spec: {containers: [{name: c, resources: {requests: "
       "{nvidia.com/gpu: 4}}}], affinity: {podAffinity: "
       "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: "
       "{matchLabels: {app: x}}}]}}}}",
       2, "never InterPodAffinity"},
      {"beside what is nowhere", two(),
       "{spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
       "[{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}}}",
       1, "never InterPodAffinity"},
      {"one that runs refuses", with_pod("", refusing),
       "{metadata: {labels: {app: x}}, spec: {nodeSelector: {zone: one}}}", 1,
       "waits InterPodAffinity"},
      {"and only there", with_pod("", refusing), "{metadata: {labels: {app: x}}}", 1, "now"},
  });
}
