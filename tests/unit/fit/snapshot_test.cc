// These tests check what a snapshot keeps of nodes and pods.
#include "runtimes/fit/snapshot.hh"

#include <fmt/format.h>

#include "tests/unit/fit/cluster.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

namespace {

Asked asked_for(std::string_view pod) {
  return read_asked({job("j", 1, pod)}, {});
}

}  // namespace

TEST_CASE("equal pods are kept once", "[fit]") {
  TestCluster cluster;
  cluster.node("a").node("b");
  for (int i = 0; i < 6; ++i)
    cluster.pod("p" + std::to_string(i), i % 2 == 0 ? "a" : "b",
                fmt::format("{{metadata: {{labels: {{index: \"{}\"}}, ownerReferences: [{{kind: "
                            "Job, name: j, controller: true}}]}}}}",
                            i));
  const Snapshot snapshot = cluster.snapshot(asked_for("{}"));
  CHECK(snapshot.groups.size() == 1);
  REQUIRE(snapshot.nodes.size() == 2);
  CHECK(snapshot.nodes[0].pods == decltype(snapshot.nodes[0].pods){{0, 3}});
  REQUIRE(snapshot.holders.size() == 1);
  CHECK(snapshot.holders[0].kind == "job");
  CHECK(snapshot.holders[0].name == "j");
}

TEST_CASE("pods that a constraint distinguishes are kept apart", "[fit]") {
  TestCluster cluster;
  cluster.node("a");
  const std::string owned = "ownerReferences: [{kind: Job, name: j, controller: true}]";
  cluster.pod("p", "a", "{metadata: {labels: {app: x}, " + owned + "}}");
  cluster.pod("q", "a", "{metadata: {labels: {app: y}, " + owned + "}}");
  CHECK(cluster.snapshot(asked_for("{}")).groups.size() == 1);
  CHECK(cluster
            .snapshot(asked_for("{spec: {affinity: {podAffinity: "
                                "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
                                "zone, labelSelector: {matchLabels: {app: x}}}]}}}}"))
            .groups.size() == 2);
}

TEST_CASE("pods without a node are counted, and those that ended are not", "[fit]") {
  TestCluster cluster;
  cluster.node("a");
  cluster.pod("p", "a", "{spec: {nodeName: null}, status: {phase: Pending}}");
  cluster.pod("q", "a", "{status: {phase: Failed}}");
  cluster.pod("r", "gone");
  const Snapshot snapshot = cluster.snapshot(asked_for("{}"));
  CHECK(snapshot.waiting_pods == 1);
  CHECK(snapshot.groups.empty());
}

TEST_CASE("a job is known by the label of its pods, and its oldest pod", "[fit]") {
  TestCluster cluster;
  cluster.node("a");
  const std::string label = "labels: {jobset.sigs.k8s.io/jobset-name: llama}, ";
  cluster.pod("p", "a", "{metadata: {" + label + "creationTimestamp: \"2026-11-02T00:00:00Z\"}}");
  cluster.pod("q", "a", "{metadata: {" + label + "creationTimestamp: \"2026-10-01T00:00:00Z\"}}");
  const Snapshot snapshot = cluster.snapshot(asked_for("{}"));
  REQUIRE(snapshot.holders.size() == 1);
  CHECK(snapshot.holders[0].kind == "trainjob");
  CHECK(snapshot.holders[0].name == "llama");
  CHECK(snapshot.holders[0].since->to_string() == "2026-10-01T00:00:00Z");
}

TEST_CASE("a text that is no object is left out", "[fit]") {
  SnapshotReader reader(ResourceTable(), {}, {});
  for (const char* text : {"", "{", "[]", "{\"metadata\":1,\"spec\":2}", "null"}) {
    reader.add_pod(text);
    reader.add_quota(text);
  }
  reader.add_node("{");
  const Snapshot snapshot = reader.take();
  CHECK(snapshot.nodes.empty());
  CHECK(snapshot.groups.empty());
}
