#include "runtimes/fit/holders.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "kube/model/saturating.hh"
#include "runtimes/fit/place.hh"

namespace trainer::fit {

std::vector<const World::State*> open_nodes(const World& world, const Role& role) {
  std::vector<const World::State*> nodes;
  for (const World::State& state : world.nodes())
    if (!RoleRules::find_obstacle_of_node(role.pod, *state.node)) nodes.push_back(&state);
  return nodes;
}

std::size_t find_scarce(const World& world, const Amounts& requests,
                        const std::vector<const World::State*>& nodes) {
  using Rank = std::tuple<std::int64_t, bool>;
  const ResourceTable& table = world.snapshot().resources;
  std::size_t scarce = ResourceTable::kPods;
  Rank highest{0, false};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto lacking = std::ranges::count_if(nodes, [&](const World::State* state) {
      return requests[i] > 0 && requests[i] > state->node->allocatable[i] - state->used[i];
    });
    const Rank rank{lacking, is_device(table.name(i))};
    if (rank > highest) {
      highest = rank;
      scarce = i;
    }
  }
  return scarce;
}

void add_holders(const World& world, const std::vector<const World::State*>& nodes,
                 std::size_t resource, Reason& reason) {
  const Snapshot& snapshot = world.snapshot();
  std::map<std::size_t, std::pair<std::int64_t, std::int64_t>> held;  // pods and amount
  for (const World::State* state : nodes) {
    for (const auto& [index, count] : state->node->pods) {
      const PodGroup& group = snapshot.groups[index];
      if (group.requests[resource] <= 0 || group.is_of_node) continue;
      held[group.holder].first += count;
      auto& amount = held[group.holder].second;
      amount = kube::saturating_add(
          amount, kube::saturating_multiply<std::int64_t>(count, group.requests[resource]));
    }
  }
  for (const auto& [holder, sums] : held) {
    reason.holders.push_back({snapshot.holders[holder], sums.first,
                              fmt::format("{} {}", snapshot.resources.print(resource, sums.second),
                                          snapshot.resources.name(resource)),
                              std::nullopt});
  }
  std::ranges::stable_sort(reason.holders, [](const Held& a, const Held& b) {
    return std::tie(a.by.since, a.by.ns, a.by.name) < std::tie(b.by.since, b.by.ns, b.by.name);
  });
  if (reason.holders.size() <= kMaxHolders) return;
  reason.more_holders = static_cast<std::int64_t>(reason.holders.size() - kMaxHolders);
  reason.holders.resize(kMaxHolders);
}

}  // namespace trainer::fit
