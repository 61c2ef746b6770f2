#include "tests/unit/fit/kueue.hh"

#include <fmt/format.h>

namespace trainer::fit::test {

std::string quota(const std::string& flavor, int nominal, const std::string& more) {
  return fmt::format("{{name: {}, resources: [{{name: nvidia.com/gpu, nominalQuota: {}{}}}]}}",
                     flavor, nominal, more);
}

std::string group(const std::string& flavors) {
  return fmt::format("resourceGroups: [{{coveredResources: [nvidia.com/gpu], flavors: [{}]}}]",
                     flavors);
}

std::string reservation(const std::string& flavor, int total) {
  return fmt::format(
      "flavorsReservation: [{{name: {}, resources: [{{name: nvidia.com/gpu, total: {}}}]}}]",
      flavor, total);
}

TestKueue::TestKueue() {
  for (const char* name : {"a", "b"})
    flavor(fmt::format("{{metadata: {{name: {0}}}, spec: {{nodeLabels: {{pool: {0}}}}}}}", name));
  state.queue = "cq";
  state.namespace_labels.emplace();
}

TestKueue& TestKueue::queue(const std::string& name, const std::string& spec,
                            const std::string& status) {
  const std::string all =
      spec.find("namespaceSelector") == spec.npos ? "namespaceSelector: {}, " : "";
  queues_.push_back(
      yaml(fmt::format("{{metadata: {{name: {}}}, spec: {{{}{}}}, status: "
                       "{{{}}}}}",
                       name, all, spec, status)));
  return *this;
}

TestKueue& TestKueue::cohort(const std::string& name, const std::string& spec) {
  cohorts_.push_back(yaml(fmt::format("{{metadata: {{name: {}}}, spec: {{{}}}}}", name, spec)));
  return *this;
}

TestKueue& TestKueue::flavor(const std::string& object) {
  flavors_.push_back(yaml(object));
  return *this;
}

TestKueue& TestKueue::workload(const std::string& queue, const std::string& name, int gpus,
                               int priority, const std::string& status) {
  workloads_.push_back(yaml(fmt::format(
      "{{metadata: {{name: {0}, namespace: ns, creationTimestamp: \"2026-11-{1:02}T00:00:00Z\", "
      "ownerReferences: [{{kind: TrainJob, name: {0}, controller: true}}]}}, spec: {{queueName: "
      "{2}, priority: {3}, podSets: [{{name: main, count: {4}, template: {{spec: {{containers: "
      "[{{name: c, resources: {{requests: {{nvidia.com/gpu: 1}}}}}}]}}}}}}]}}, status: {{{5}}}}}",
      name, workloads_.size() + 1, queue, priority, gpus, status)));
  return *this;
}

TestKueue& TestKueue::reserved(const std::string& queue, const std::string& name, int gpus,
                               int priority) {
  return workload(
      queue, name, gpus, priority,
      fmt::format("conditions: [{{type: QuotaReserved, status: \"True\", lastTransitionTime: "
                  "\"2026-11-{:02}T01:00:00Z\"}}], admission: {{clusterQueue: {}, "
                  "podSetAssignments: [{{name: main, count: {}, flavors: {{nvidia.com/gpu: a}}, "
                  "resourceUsage: {{nvidia.com/gpu: {}}}}}]}}",
                  workloads_.size() + 1, queue, gpus, gpus));
}

TestKueue& TestKueue::waiting(const std::string& queue, const std::string& name, int gpus,
                              int priority) {
  return workload(queue, name, gpus, priority, "");
}

QueueAnswer TestKueue::ask(const std::vector<kube::Json>& objects) const {
  const Asked asked = read_asked(objects, {});
  KueueState given = state;
  given.resources = ResourceTable(resources_of(asked));
  for (const kube::Json& each : queues_) given.add(ClusterQueue::read(each, given.resources));
  for (const kube::Json& each : cohorts_)
    given.cohorts.push_back(Cohort::read(each, given.resources));
  if (given.flavors_unread.empty())
    for (const kube::Json& each : flavors_) given.flavors.push_back(ResourceFlavor::read(each));
  if (given.workloads_unread.empty())
    for (const kube::Json& each : workloads_) {
      auto read = QueuedWorkload::read(each, given.resources);
      if (!read) continue;
      if (read->is_waiting()) read->cluster_queue = read->queue;
      given.add(std::move(*read));
    }
  return kueue_quota(asked, given);
}

QueueAnswer TestKueue::ask(int gpus) const {
  return ask({job("j", gpus, asks("{nvidia.com/gpu: 1}"))});
}

}  // namespace trainer::fit::test
