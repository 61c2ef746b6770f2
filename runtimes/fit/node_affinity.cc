// pkg/scheduler/framework/plugins/nodeaffinity
#include <algorithm>

#include "runtimes/fit/rules.hh"

namespace trainer::fit {

bool node_affinity(const PodRequest& pod, const Node& node) {
  for (const auto& [key, value] : pod.node_selector) {
    const auto at = node.labels.find(key);
    if (at == node.labels.end() || at->second != value) return false;
  }
  return !pod.node_terms || std::ranges::any_of(*pod.node_terms, [&node](const NodeTerm& term) {
    return term.matches(node.name, node.labels);
  });
}

}  // namespace trainer::fit
