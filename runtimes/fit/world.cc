#include "runtimes/fit/world.hh"

#include <algorithm>

namespace trainer::fit {

World::World(const Snapshot& snapshot, Pods pods) : snapshot_(&snapshot) {
  nodes_.reserve(snapshot.nodes.size());
  for (const Node& node : snapshot.nodes) {
    State state{&node, Amounts(snapshot.resources.size(), 0), {}};
    for (const auto& [index, count] : node.pods) {
      const PodGroup& group = snapshot.groups[index];
      if (pods == Pods::kEmptied && !group.is_of_node) continue;
      state.pods.emplace_back(&group, count);
      has_anti_affinity_ |= !group.anti_affinity.empty();
      for (std::size_t i = 0; i < state.used.size(); ++i)
        state.used[i] += group.requests[i] * count;
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
  for (std::size_t i = 0; i < state.used.size(); ++i) state.used[i] += group.requests[i];
  has_anti_affinity_ |= !group.anti_affinity.empty();
  if (state.pods.empty() || state.pods.back().first != &group) state.pods.emplace_back(&group, 0);
  ++state.pods.back().second;
}

std::int64_t World::free(const State& state, std::size_t resource) const {
  return std::max<std::int64_t>(state.node->allocatable[resource] - state.used[resource], 0);
}

}  // namespace trainer::fit
