#include "tests/unit/fit/cluster.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/yaml.hh"
#include "kube/tests/merge_patch.hh"

namespace trainer::fit::test {

using kube::Json;

Json yaml(std::string_view text) {
  auto parsed = kube::parse_yaml(text);
  INFO(text);
  REQUIRE(parsed);
  return std::move(*parsed);
}

Json with(Json object, std::string_view more) {
  return kube::test::merge_patch(std::move(object), yaml(more));
}

Json job(const std::string& name, int pods, std::string_view pod) {
  Json made = yaml(fmt::format(
      "{{kind: Job, metadata: {{name: {}, namespace: ns}}, spec: {{parallelism: {}, completions: "
      "{}, template: {{spec: {{containers: [{{name: c}}]}}}}}}}}",
      name, pods, pods));
  Json& pod_template = made["spec"]["template"];
  pod_template = with(std::move(pod_template), pod);
  return made;
}

std::string asks(std::string_view requests) {
  return fmt::format("{{spec: {{containers: [{{name: c, resources: {{requests: {}}}}}]}}}}",
                     requests);
}

TestCluster& TestCluster::node(const std::string& name, std::string_view more) {
  nodes_.push_back(
      with(yaml(fmt::format("{{metadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}}}}}, "
                            "status: {{allocatable: {{cpu: 8, memory: 16Gi, nvidia.com/gpu: 4, "
                            "pods: 110}}}}}}",
                            name)),
           more));
  return *this;
}

TestCluster& TestCluster::pod(const std::string& name, const std::string& node,
                              std::string_view more) {
  pods_.push_back(with(yaml(fmt::format("{{metadata: {{name: {}, namespace: ns, "
                                        "creationTimestamp: \"2026-11-01T00:00:00Z\"}}, spec: "
                                        "{{nodeName: {}, containers: [{{name: c}}]}}, status: "
                                        "{{phase: Running}}}}",
                                        name, node)),
                       more));
  return *this;
}

TestCluster& TestCluster::quota(std::string_view object) {
  quotas_.push_back(yaml(object));
  return *this;
}

Snapshot TestCluster::snapshot(const Asked& asked) const {
  SnapshotReader reader(ResourceTable(resources_of(asked)), label_keys_of(asked),
                        {{"jobset.sigs.k8s.io/jobset-name", "trainjob"}});
  for (const Json& each : nodes_) reader.add_node(kube::print_json(each));
  for (const Json& each : pods_) reader.add_pod(kube::print_json(each));
  for (const Json& each : quotas_) reader.add_quota(kube::print_json(each));
  return reader.take();
}

PlanAnswer TestCluster::plan(const std::vector<Json>& objects) const {
  const Asked asked = read_asked(objects, {});
  return plan_fit(asked, snapshot(asked));
}

std::string TestCluster::verdict(const std::vector<Json>& objects) const {
  const PlanAnswer answer = plan(objects);
  std::string text = name_of(answer.verdict);
  if (!answer.reasons.empty()) text += " " + answer.reasons[0].rule;
  return text;
}

}  // namespace trainer::fit::test
