// This test checks that a large Kueue is planned in seconds.
#include <fmt/format.h>

#include <chrono>

#include "tests/unit/fit/kueue.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

namespace {

Role role_of(std::int64_t pods) {
  Role role;
  role.name = "main";
  role.pods = pods;
  role.pod.requests["nvidia.com/gpu"] = kube::Quantity::of(1);
  return role;
}

std::size_t gpus_of(const ResourceTable& table) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table.name(i) == "nvidia.com/gpu") found = i;
  return found;
}

}  // namespace

TEST_CASE("a thousand StrictFIFO queues of a cohort take seconds", "[fit]") {
  constexpr int kQueues = 1'000;
  constexpr int kWaiting = 10'000;
  constexpr int kReserved = 100;
  constexpr int kEach = 80;  // nothing is left, and the first of each queue preempts
  const Asked asked = read_asked({job("j", 1, asks("{nvidia.com/gpu: 1}"))}, {});
  KueueState state;
  state.resources = ResourceTable(resources_of(asked));
  state.queue = "cq-0";
  state.namespace_labels.emplace();
  state.flavors.push_back(ResourceFlavor::read(yaml("{metadata: {name: a}}")));
  const FlavorResource gpus{"a", gpus_of(state.resources)};
  for (int i = 0; i < kQueues; ++i) {
    ClusterQueue queue = ClusterQueue::read(
        yaml("{spec: {cohortName: all, queueingStrategy: StrictFIFO, namespaceSelector: {}, "
             "preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}, " +
             group(quota("a", 8, i == 0 ? ", lendingLimit: 0" : "")) + "}}"),
        state.resources);
    queue.name = fmt::format("cq-{}", i);
    if (i > 0 && i <= kReserved) queue.reserved[gpus] = kEach;
    state.add(std::move(queue));
  }
  const auto add = [&](int i, int queue, std::int64_t pods) {
    QueuedWorkload workload;
    workload.ns = "ns";
    workload.name = fmt::format("w-{}", i);
    workload.cluster_queue = fmt::format("cq-{}", queue);
    workload.created = kube::Time::from_seconds(i);
    workload.pods = pods;
    return workload;
  };
  for (int i = 0; i < kReserved; ++i) {
    QueuedWorkload workload = add(i, i + 1, kEach);
    workload.reserved_since = workload.created;
    workload.usage[gpus] = kEach;
    state.add(std::move(workload));
  }
  for (int i = 0; i < kWaiting; ++i) {
    QueuedWorkload workload = add(i, i % kQueues, 8);
    workload.roles.push_back(role_of(workload.pods));
    state.add(std::move(workload));
  }
  const auto begin = std::chrono::steady_clock::now();
  const QueueAnswer answer = kueue_quota(asked, state);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  INFO(took.count() << " s");
  CHECK(answer.verdict == Verdict::kWaits);
  CHECK(answer.plan.pending == kWaiting / kQueues);
  CHECK(took < std::chrono::seconds(20));
}
