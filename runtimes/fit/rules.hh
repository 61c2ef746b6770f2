// Each rule is a filter of kube-scheduler, under its name there and in a file of its own: may this
// pod go to this node? Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtimes/fit/request.hh"
#include "runtimes/fit/world.hh"

namespace trainer::fit {

// The scheduler asks its filters in this order, but for NodeAffinity. It comes first here, since it
// says which nodes the user means: others are no reason why a pod waits.
enum class Rule {
  kNodeAffinity,
  kNodeUnschedulable,
  kTaintToleration,
  kNodePorts,
  kNodeResourcesFit,
  kPodTopologySpread,
  kInterPodAffinity,
};
std::string name_of(Rule rule);

// These rules depend on the node alone, and not on the pods that are on it.
bool node_unschedulable(const PodRequest& pod, const Node& node);
bool taint_toleration(const PodRequest& pod, const Node& node);
bool node_affinity(const PodRequest& pod, const Node& node);  // spec.nodeSelector, too

// Returns the first taint that keeps the pod away, or nullptr.
const Taint* find_untolerated(const PodRequest& pod, const Node& node);

bool node_ports(const PodRequest& pod, const World::State& state);
// `requests` are those of the pod.
bool node_resources_fit(const Amounts& requests, const World::State& state);

// placed() follows each World::place() of a pod of the same request. The world outlives the rule.
class PodTopologySpread {
 public:
  PodTopologySpread(const PodRequest& pod, const World& world);
  bool allows(const World::State& state) const;
  void placed(const World::State& state);

 private:
  struct Constraint {
    const SpreadConstraint* given = nullptr;
    std::map<std::string, std::int64_t, std::less<>> pods_of_domain;
    bool is_self_matching = false;
    std::int64_t least = 0;  // pods in the emptiest domain
    void find_least();
  };
  bool counts(const Node& node, const SpreadConstraint& constraint) const;
  const PodRequest& pod_;
  std::vector<Constraint> constraints_;
};

class InterPodAffinity {
 public:
  InterPodAffinity(const PodRequest& pod, const World& world);
  bool allows(const World::State& state) const;
  void placed(const World::State& state);

 private:
  // A topology key and a value of it, and how many pods are there.
  using Domains = std::map<std::pair<std::string, std::string>, std::int64_t, std::less<>>;
  void add(const World::State& state, const PodGroup& group, std::int64_t count);
  void add_own(const Node& node, const std::string& ns, const kube::StringMap& labels,
               std::int64_t count);
  bool allows_affinity(const Node& node) const;

  const PodRequest& pod_;
  Domains affinity_;       // counts pods that match all terms of the pod's affinity
  Domains anti_affinity_;  // counts pods that match a term of its anti-affinity
  std::set<std::pair<std::string, std::string>> refused_;  // by the anti-affinity of other pods
};

}  // namespace trainer::fit
