// pkg/scheduler/framework/plugins/interpodaffinity: required terms alone.
#include <algorithm>

#include "runtimes/fit/rules.hh"

namespace trainer::fit {
namespace {

const std::string* find_label(const Node& node, const std::string& key) {
  const auto at = node.labels.find(key);
  return at == node.labels.end() ? nullptr : &at->second;
}

bool match_terms(const std::vector<PodTerm>& terms, const std::string& ns,
                 const kube::StringMap& labels) {
  return std::ranges::all_of(terms, [&](const PodTerm& term) { return term.matches(ns, labels); });
}

}  // namespace

InterPodAffinity::InterPodAffinity(const PodRequest& pod, const World& world) : pod_(pod) {
  if (pod.affinity.empty() && pod.anti_affinity.empty() && !world.has_anti_affinity()) return;
  for (const World::State& state : world.nodes())
    for (const auto& [group, count] : state.pods) add(state, *group, count);
}

void InterPodAffinity::add(const World::State& state, const PodGroup& group, std::int64_t count) {
  for (const PodTerm& term : group.anti_affinity) {
    const std::string* domain = find_label(*state.node, term.topology_key);
    if (domain != nullptr && term.matches(pod_.ns, pod_.labels))
      refused_.emplace(term.topology_key, *domain);
  }
  add_own(*state.node, group.ns, group.labels, count);
}

void InterPodAffinity::add_own(const Node& node, const std::string& ns,
                               const kube::StringMap& labels, std::int64_t count) {
  if (!pod_.affinity.empty() && match_terms(pod_.affinity, ns, labels)) {
    for (const PodTerm& term : pod_.affinity)
      if (const std::string* domain = find_label(node, term.topology_key))
        affinity_[{term.topology_key, *domain}] += count;
  }
  for (const PodTerm& term : pod_.anti_affinity) {
    const std::string* domain = find_label(node, term.topology_key);
    if (domain != nullptr && term.matches(ns, labels))
      anti_affinity_[{term.topology_key, *domain}] += count;
  }
}

// The first pod of a group that is to be together may go anywhere.
bool InterPodAffinity::allows_affinity(const Node& node) const {
  bool is_beside = true;
  for (const PodTerm& term : pod_.affinity) {
    const std::string* domain = find_label(node, term.topology_key);
    if (domain == nullptr) return false;
    is_beside &= affinity_.contains({term.topology_key, *domain});
  }
  return is_beside || (affinity_.empty() && match_terms(pod_.affinity, pod_.ns, pod_.labels));
}

bool InterPodAffinity::allows(const World::State& state) const {
  if (!refused_.empty()) {
    for (const auto& [key, value] : state.node->labels)
      if (refused_.contains({key, value})) return false;
  }
  for (const PodTerm& term : pod_.anti_affinity) {
    const std::string* domain = find_label(*state.node, term.topology_key);
    if (domain != nullptr && anti_affinity_.contains({term.topology_key, *domain})) return false;
  }
  return allows_affinity(*state.node);
}

void InterPodAffinity::placed(const World::State& state) {
  for (const PodTerm& term : pod_.anti_affinity) {
    const std::string* domain = find_label(*state.node, term.topology_key);
    if (domain != nullptr && term.matches(pod_.ns, pod_.labels))
      refused_.emplace(term.topology_key, *domain);
  }
  add_own(*state.node, pod_.ns, pod_.labels, 1);
}

}  // namespace trainer::fit
