// pkg/scheduler/framework/plugins/podtopologyspread
#include <algorithm>
#include <limits>

#include "runtimes/fit/rules.hh"

namespace trainer::fit {

PodTopologySpread::PodTopologySpread(const PodRequest& pod, const World& world) : pod_(pod) {
  for (const SpreadConstraint& each : pod.spread)
    constraints_.push_back({&each, {}, each.selector.matches(pod.labels), 0});
  if (constraints_.empty()) return;
  for (const World::State& state : world.nodes()) {
    for (Constraint& each : constraints_) {
      if (!counts(*state.node, *each.given)) continue;
      std::int64_t& pods = each.pods_of_domain[state.node->labels.at(each.given->topology_key)];
      for (const auto& [group, count] : state.pods)
        if (!group->is_terminating && group->ns == pod.ns &&
            each.given->selector.matches(group->labels))
          pods += count;
    }
  }
  for (Constraint& each : constraints_) each.find_least();
}

// A node that lacks the key of any constraint counts for none of them.
bool PodTopologySpread::counts(const Node& node, const SpreadConstraint& constraint) const {
  for (const SpreadConstraint& each : pod_.spread)
    if (!node.labels.contains(each.topology_key)) return false;
  if (constraint.honors_affinity && !node_affinity(pod_, node)) return false;
  return !constraint.honors_taints || taint_toleration(pod_, node);
}

void PodTopologySpread::Constraint::find_least() {
  least = 0;
  if (static_cast<std::int64_t>(pods_of_domain.size()) < given->min_domains) return;
  least = std::numeric_limits<std::int32_t>::max();
  for (const auto& [domain, pods] : pods_of_domain) least = std::min(least, pods);
}

bool PodTopologySpread::allows(const World::State& state) const {
  for (const Constraint& each : constraints_) {
    const auto domain = state.node->labels.find(each.given->topology_key);
    if (domain == state.node->labels.end()) return false;
    const auto at = each.pods_of_domain.find(domain->second);
    const std::int64_t here = at == each.pods_of_domain.end() ? 0 : at->second;
    if (here + (each.is_self_matching ? 1 : 0) - each.least > each.given->max_skew) return false;
  }
  return true;
}

void PodTopologySpread::placed(const World::State& state) {
  for (Constraint& each : constraints_) {
    if (!each.is_self_matching || !counts(*state.node, *each.given)) continue;
    ++each.pods_of_domain[state.node->labels.at(each.given->topology_key)];
    each.find_least();
  }
}

}  // namespace trainer::fit
