#include "runtimes/fit/explain.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "kube/model/saturating.hh"
#include "runtimes/fit/holders.hh"

namespace trainer::fit {
namespace {

std::string count_of_nodes(std::size_t count) {
  return fmt::format("{} node{}", count, count == 1 ? "" : "s");
}

class Explainer {
 public:
  Explainer(const Placement& placement, const Role& role, World::Pods pods)
      : world_(placement.world),
        role_(role),
        rules_(role, placement.world),
        pods_(pods),
        placed_(placement.placed_of(role)) {
    for (const World::State& state : world_.nodes()) {
      const auto rule = rules_.find_obstacle(state);
      if (rule) refused_[*rule].push_back(&state);
    }
  }

  // The rule that removes the last node is the one that the scheduler asks last.
  Reason run() {
    Reason reason;
    reason.role = role_.name;
    if (refused_.empty()) {
      reason.rule = name_of(Rule::kNodeAffinity);
      reason.message = world_.nodes().empty() ? "the cluster has no nodes"
                                              : "no node is left beside the other pods of the job";
      return reason;
    }
    const Rule rule = refused_.rbegin()->first;
    reason.rule = name_of(rule);
    say(rule, reason);
    reason.message += others();
    if (placed_ > 0 && reason.change.empty())
      reason.change = fmt::format("{} of {} {}", placed_, count_of_pods(role_.pods),
                                  is_now() ? "fit now" : "fit once others have ended");
    return reason;
  }

 private:
  bool is_now() const { return pods_ == World::Pods::kRunning; }
  const std::vector<const World::State*>& refused(Rule rule) const { return refused_.at(rule); }

  void say(Rule rule, Reason& reason) const {
    switch (rule) {
      case Rule::kNodeUnschedulable:
        return say_unschedulable(reason);
      case Rule::kTaintToleration:
        return say_taint(reason);
      case Rule::kNodeAffinity:
        return say_affinity(reason);
      case Rule::kNodePorts:
        return say_ports(reason);
      case Rule::kNodeResourcesFit:
        return say_resources(reason);
      case Rule::kPodTopologySpread:
        return say_spread(reason);
      case Rule::kInterPodAffinity:
        return say_pod_affinity(reason);
    }
  }

  void say_unschedulable(Reason& reason) const {
    const auto& nodes = refused(Rule::kNodeUnschedulable);
    reason.message = fmt::format("{} unschedulable",
                                 nodes.size() == 1 ? "the node " + nodes[0]->node->name + " is"
                                                   : count_of_nodes(nodes.size()) + " are");
    reason.change = fmt::format("`kubectl uncordon {}` lets pods onto it", nodes[0]->node->name);
  }

  void say_taint(Reason& reason) const {
    std::map<Taint, std::size_t> nodes_of;
    for (const World::State* state : refused(Rule::kTaintToleration))
      if (const Taint* taint = find_untolerated(role_.pod, *state->node)) ++nodes_of[*taint];
    const auto most = std::ranges::max_element(
        nodes_of, [](const auto& a, const auto& b) { return a.second < b.second; });
    reason.message = fmt::format("{} {} the taint {}, which the pods do not tolerate",
                                 count_of_nodes(most->second), most->second == 1 ? "has" : "have",
                                 most->first.to_string());
    if (nodes_of.size() > 1)
      reason.message += fmt::format(", others have {} more", nodes_of.size() - 1);
    // Kubernetes taints nodes that do not work, and no pod should tolerate that.
    const bool is_of_kubernetes = most->first.key.starts_with("node.kubernetes.io/");
    reason.change = is_of_kubernetes
                        ? std::string("`kubectl describe node` says what they lack")
                        : fmt::format("a toleration of {} would let the pods onto {}",
                                      most->first.to_string(), count_of_nodes(most->second));
  }

  // Returns the values that nodes have of a label, and how many nodes have each.
  std::string values_of(const std::string& key) const {
    std::map<std::string, std::size_t> nodes_of;
    for (const World::State* state : refused(Rule::kNodeAffinity)) {
      const auto at = state->node->labels.find(key);
      if (at != state->node->labels.end()) ++nodes_of[at->second];
    }
    if (nodes_of.empty()) return fmt::format("no node has a label {}", key);
    std::vector<std::string> texts;
    for (const auto& [value, count] : nodes_of) {
      if (texts.size() == kMaxHolders) {
        texts.push_back(fmt::format("{} others", nodes_of.size() - kMaxHolders));
        break;
      }
      texts.push_back(fmt::format("{} ({})", value, count_of_nodes(count)));
    }
    return fmt::format("on these nodes {} is {}", key, fmt::join(texts, ", "));
  }

  void say_affinity(Reason& reason) const {
    const auto& nodes = refused(Rule::kNodeAffinity);
    for (const auto& [key, value] : role_.pod.node_selector) {
      const bool is_anywhere = std::ranges::any_of(nodes, [&](const World::State* state) {
        const auto at = state->node->labels.find(key);
        return at != state->node->labels.end() && at->second == value;
      });
      if (is_anywhere) continue;
      reason.message = fmt::format("the nodeSelector {}={} matches none of {}", key, value,
                                   count_of_nodes(nodes.size()));
      reason.change = values_of(key);
      return;
    }
    std::vector<std::string> wanted;
    for (const auto& [key, value] : role_.pod.node_selector)
      wanted.push_back(fmt::format("{}={}", key, value));
    std::vector<std::string> terms;
    for (const NodeTerm& term : role_.pod.node_terms.value_or(std::vector<NodeTerm>())) {
      auto all = term.labels;
      all.insert(all.end(), term.fields.begin(), term.fields.end());
      terms.push_back(print_all(all));
    }
    if (!terms.empty()) wanted.push_back(fmt::format("{}", fmt::join(terms, " or ")));
    reason.message =
        fmt::format("none of {} has {}", count_of_nodes(nodes.size()), fmt::join(wanted, ", and "));
    reason.change = "change the node selector or node affinity, or label a node";
  }

  void say_ports(Reason& reason) const {
    std::vector<std::string> ports;
    for (const HostPort& port : role_.pod.ports)
      ports.push_back(fmt::format("{}/{}", port.port, port.protocol));
    reason.message = fmt::format("host port {} is in use on {}", fmt::join(ports, ", "),
                                 count_of_nodes(refused(Rule::kNodePorts).size()));
    reason.change = placed_ > 0 ? "" : "pods without hostPort and hostNetwork share a node";
  }

  void say_spread(Reason& reason) const {
    std::vector<std::string> texts;
    for (const SpreadConstraint& each : role_.pod.spread)
      texts.push_back(fmt::format("{} (maxSkew {})", each.topology_key, each.max_skew));
    reason.message =
        fmt::format("{} of {} keep the spread over {}; the next one would exceed it on {}", placed_,
                    count_of_pods(role_.pods), fmt::join(texts, " and "),
                    count_of_nodes(refused(Rule::kPodTopologySpread).size()));
    if (placed_ == 0) reason.change = "a larger maxSkew, or ScheduleAnyway, would help";
  }

  void say_pod_affinity(Reason& reason) const {
    std::vector<std::string> texts;
    for (const PodTerm& each : role_.pod.affinity)
      texts.push_back(fmt::format("beside pods with {} in one {}",
                                  print_all(each.selector.requirements), each.topology_key));
    for (const PodTerm& each : role_.pod.anti_affinity)
      texts.push_back(fmt::format("apart from pods with {} by {}",
                                  print_all(each.selector.requirements), each.topology_key));
    reason.message = texts.empty()
                         ? fmt::format("the anti-affinity of other pods keeps these from {}",
                                       count_of_nodes(refused(Rule::kInterPodAffinity).size()))
                         : fmt::format("{} of {} find a place {}", placed_,
                                       count_of_pods(role_.pods), fmt::join(texts, ", and "));
    if (placed_ == 0) reason.change = "a preferred term instead of the required one would help";
  }

  void say_resources(Reason& reason) const;
  void say_too_wide(std::size_t resource, std::int64_t most, std::size_t nodes,
                    Reason& reason) const;

  // Says how many nodes earlier rules have removed.
  std::string others() const {
    std::vector<std::string> texts;
    for (const auto& [rule, nodes] : refused_)
      if (rule != refused_.rbegin()->first)
        texts.push_back(fmt::format("{} by {}", count_of_nodes(nodes.size()), name_of(rule)));
    return texts.empty() ? std::string()
                         : fmt::format(" (left out before: {})", fmt::join(texts, ", "));
  }

  const World& world_;
  const Role& role_;
  RoleRules rules_;
  World::Pods pods_;
  std::int64_t placed_;
  std::map<Rule, std::vector<const World::State*>> refused_;
};

void Explainer::say_too_wide(std::size_t resource, std::int64_t most, std::size_t nodes,
                             Reason& reason) const {
  const ResourceTable& table = world_.snapshot().resources;
  reason.message =
      fmt::format("a pod asks for {} {}, and of {} that it may go to the widest has {}{}",
                  table.print(resource, rules_.requests()[resource]), table.name(resource),
                  count_of_nodes(nodes), table.print(resource, most), is_now() ? " free" : "");
}

void Explainer::say_resources(Reason& reason) const {
  const ResourceTable& table = world_.snapshot().resources;
  const Amounts& requests = rules_.requests();
  const std::vector<const World::State*> nodes = open_nodes(world_, role_);
  const std::size_t scarce = find_scarce(world_, requests, refused(Rule::kNodeResourcesFit));
  std::int64_t free = 0;
  std::int64_t total = 0;
  std::int64_t most = 0;
  for (const World::State* state : nodes) {
    free = kube::saturating_add(free, world_.free(*state, scarce));
    total = kube::saturating_add(total, state->node->allocatable[scarce]);
    most = std::max(most, world_.free(*state, scarce));
  }
  if (!is_now() && placed_ == 0) {
    say_too_wide(scarce, most, nodes.size(), reason);
    return;
  }
  // The world has the pods that were placed already.
  const std::int64_t before =
      kube::saturating_add(free, kube::saturating_multiply(placed_, requests[scarce]));
  const std::int64_t wanted = kube::saturating_multiply(role_.pods, requests[scarce]);
  const std::string has =
      is_now() ? fmt::format("{} of {} {} are free on {}", table.print(scarce, before),
                             table.print(scarce, total), table.name(scarce),
                             count_of_nodes(nodes.size()))
               : fmt::format("{} {} are all that {} have", table.print(scarce, total),
                             table.name(scarce), count_of_nodes(nodes.size()));
  reason.message =
      fmt::format("{} that the pods may go to; {} {} for {}", has, count_of_pods(role_.pods),
                  role_.pods == 1 ? "asks" : "ask", table.print(scarce, wanted));
  if (before >= wanted)
    reason.message += fmt::format(", {} each, and no node has so much left",
                                  table.print(scarce, requests[scarce]));
  if (is_now()) add_holders(world_, nodes, scarce, reason);
}

}  // namespace

Reason explain(const Placement& placement, const Role& role, World::Pods pods) {
  return Explainer(placement, role, pods).run();
}

Amounts widest(const World& world, const Role& role) {
  Amounts most(world.snapshot().resources.size(), 0);
  for (const World::State* state : open_nodes(world, role))
    for (std::size_t i = 0; i < most.size(); ++i)
      most[i] = std::max(most[i], world.free(*state, i));
  return most;
}

}  // namespace trainer::fit
