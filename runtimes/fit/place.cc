#include "runtimes/fit/place.hh"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace trainer::fit {
namespace {

double share(std::int64_t used, std::int64_t allocatable) {
  if (allocatable <= 0) return 1;
  return std::min(1.0, static_cast<double>(used) / static_cast<double>(allocatable));
}

// A higher score is better (noderesources: LeastAllocated and BalancedAllocation).
double score(const World::State& state, const Amounts& requests, Packing packing) {
  const Amounts& has = state.node->allocatable;
  if (packing == Packing::kLeastAllocated) {
    const double cpu =
        share(state.scored_cpu + World::scored_cpu(requests), has[ResourceTable::kCpu]);
    const double memory =
        share(state.scored_memory + World::scored_memory(requests), has[ResourceTable::kMemory]);
    return 1 - (cpu + memory) / 2 + 1 - std::abs(cpu - memory) / 2;
  }
  double sum = 0;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (requests[i] > 0) sum += share(state.used[i] + requests[i], has[i]);
  return sum;
}

class RolePlacer {
 public:
  RolePlacer(World& world, const Role& role, Packing packing, std::int64_t pods)
      : world_(world),
        group_(world.add_group(role)),
        rules_(role, world),
        packing_(packing),
        pods_(pods) {
    for (std::size_t i = 0; i < world.nodes().size(); ++i)
      if (!RoleRules::find_obstacle_of_node(role.pod, *world.nodes()[i].node))
        candidates_.push_back(i);
  }

  std::int64_t run(std::map<std::size_t, std::int64_t>& by_node) {
    return rules_.is_local() ? run_local(by_node) : run_anywhere(by_node);
  }

 private:
  double score_of(std::size_t node) const {
    return score(world_.nodes()[node], rules_.requests(), packing_);
  }
  void put(std::size_t node, std::map<std::size_t, std::int64_t>& by_node) {
    world_.place(node, group_);
    rules_.placed(world_.nodes()[node]);
    ++by_node[node];
  }

  // Only the score of the node that takes a pod changes, and a full node stays full.
  std::int64_t run_local(std::map<std::size_t, std::int64_t>& by_node) {
    std::priority_queue<std::pair<double, std::size_t>> queue;
    for (const std::size_t node : candidates_) queue.emplace(score_of(node), node);
    std::int64_t placed = 0;
    while (placed < pods_ && !queue.empty()) {
      const std::size_t node = queue.top().second;
      queue.pop();
      if (rules_.find_obstacle_of_pods(world_.nodes()[node])) continue;
      put(node, by_node);
      ++placed;
      queue.emplace(score_of(node), node);
    }
    return placed;
  }

  std::int64_t run_anywhere(std::map<std::size_t, std::int64_t>& by_node) {
    for (std::int64_t placed = 0; placed < pods_; ++placed) {
      std::optional<std::pair<double, std::size_t>> best;
      for (const std::size_t node : candidates_) {
        if (rules_.find_obstacle_of_pods(world_.nodes()[node])) continue;
        const double its = score_of(node);
        if (!best || its > best->first) best.emplace(its, node);
      }
      if (!best) return placed;
      put(best->second, by_node);
    }
    return pods_;
  }

  World& world_;
  const PodGroup& group_;
  RoleRules rules_;
  Packing packing_;
  const std::int64_t pods_;
  std::vector<std::size_t> candidates_;
};

}  // namespace

RoleRules::RoleRules(const Role& role, const World& world)
    : pod_(role.pod),
      requests_(world.snapshot().resources.read(role.pod.requests)),
      spread_(role.pod, world),
      affinity_(role.pod, world) {
  requests_[ResourceTable::kPods] = 1;
  is_local_ = pod_.spread.empty() && pod_.affinity.empty() && pod_.anti_affinity.empty() &&
              !world.has_anti_affinity();
}

std::optional<Rule> RoleRules::find_obstacle_of_node(const PodRequest& pod, const Node& node) {
  if (!node_affinity(pod, node)) return Rule::kNodeAffinity;
  if (!node_unschedulable(pod, node)) return Rule::kNodeUnschedulable;
  if (!taint_toleration(pod, node)) return Rule::kTaintToleration;
  return std::nullopt;
}

std::optional<Rule> RoleRules::find_obstacle_of_pods(const World::State& state) const {
  if (!node_ports(pod_, state)) return Rule::kNodePorts;
  if (!node_resources_fit(requests_, state)) return Rule::kNodeResourcesFit;
  if (!spread_.allows(state)) return Rule::kPodTopologySpread;
  if (!affinity_.allows(state)) return Rule::kInterPodAffinity;
  return std::nullopt;
}

std::optional<Rule> RoleRules::find_obstacle(const World::State& state) const {
  if (const auto rule = find_obstacle_of_node(pod_, *state.node)) return rule;
  return find_obstacle_of_pods(state);
}

void RoleRules::placed(const World::State& state) {
  if (is_local_) return;
  spread_.placed(state);
  affinity_.placed(state);
}

const Role* Placement::find_incomplete() const {
  for (std::size_t i = 0; i < roles.size(); ++i)
    if (placed[i] < roles[i]->pods) return roles[i];
  return nullptr;
}

std::int64_t Placement::placed_of(const Role& role) const {
  const auto at = std::ranges::find(roles, &role);
  return at == roles.end() ? 0 : placed[static_cast<std::size_t>(at - roles.begin())];
}

Placement place(const Snapshot& snapshot, World::Pods pods, std::vector<const Role*> roles,
                Packing packing) {
  Placement placement{World(snapshot, pods), packing, std::move(roles), {}, {}};
  placement.placed.assign(placement.roles.size(), 0);
  // A role may have to be near one that is placed after it.
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < placement.roles.size(); ++i) {
      const Role& role = *placement.roles[i];
      const std::int64_t left = role.pods - placement.placed[i];
      if (left <= 0) continue;
      const std::int64_t more =
          RolePlacer(placement.world, role, packing, left).run(placement.by_node);
      placement.placed[i] += more;
      again |= more > 0 && placement.roles.size() > 1 && placement.find_incomplete() != nullptr &&
               !placement.find_incomplete()->pod.affinity.empty();
    }
  }
  return placement;
}

}  // namespace trainer::fit
