#include "runtimes/fit/world.hh"

#include <algorithm>

#include "kube/model/saturating.hh"

namespace trainer::fit {
namespace {

// pkg/scheduler/util/pod_resources.go
constexpr std::int64_t kDefaultMilliCpu = 100;
constexpr std::int64_t kDefaultMemory = 200 * 1024 * 1024;

}  // namespace

std::int64_t World::scored_cpu(const Amounts& requests) {
  const std::int64_t cpu = requests[ResourceTable::kCpu];
  return cpu > 0 ? cpu : kDefaultMilliCpu;
}

std::int64_t World::scored_memory(const Amounts& requests) {
  const std::int64_t memory = requests[ResourceTable::kMemory];
  return memory > 0 ? memory : kDefaultMemory;
}

void World::add(const Amounts& requests, std::int64_t count, State& state) {
  const auto add_to = [count](std::int64_t& sum, std::int64_t each) {
    sum = kube::saturating_add(sum, kube::saturating_multiply(each, count));
  };
  for (std::size_t i = 0; i < state.used.size(); ++i) add_to(state.used[i], requests[i]);
  add_to(state.scored_cpu, scored_cpu(requests));
  add_to(state.scored_memory, scored_memory(requests));
}

World::World(const Snapshot& snapshot, Pods pods) : snapshot_(&snapshot) {
  nodes_.reserve(snapshot.nodes.size());
  for (const Node& node : snapshot.nodes) {
    State state;
    state.node = &node;
    state.used.assign(snapshot.resources.size(), 0);
    for (const auto& [index, count] : node.pods) {
      const PodGroup& group = snapshot.groups[index];
      if (pods == Pods::kEmptied && !group.is_of_node) continue;
      state.pods.emplace_back(&group, count);
      has_anti_affinity_ |= !group.anti_affinity.empty();
      add(group.requests, count, state);
    }
    nodes_.push_back(std::move(state));
  }
}

const PodGroup& World::add_group(const Role& role) {
  PodGroup& group = groups_.emplace_back();
  group.ns = role.pod.ns;
  group.labels = role.pod.labels;
  group.requests = snapshot_->resources.read(role.pod.requests);
  group.requests[ResourceTable::kPods] = 1;
  group.ports = role.pod.ports;
  group.anti_affinity = role.pod.anti_affinity;
  return group;
}

void World::place(std::size_t node, const PodGroup& group) {
  State& state = nodes_[node];
  add(group.requests, 1, state);
  has_anti_affinity_ |= !group.anti_affinity.empty();
  if (state.pods.empty() || state.pods.back().first != &group) state.pods.emplace_back(&group, 0);
  ++state.pods.back().second;
}

std::int64_t World::free(const State& state, std::size_t resource) const {
  return std::max<std::int64_t>(
      kube::saturating_add(state.node->allocatable[resource], -state.used[resource]), 0);
}

}  // namespace trainer::fit
