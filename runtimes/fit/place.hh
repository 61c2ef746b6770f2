// Pods are placed one after the other, as kube-scheduler binds them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtimes/fit/rules.hh"
#include "runtimes/fit/world.hh"

namespace trainer::fit {

// kLeastAllocated is what kube-scheduler does by default. kMostAllocated keeps large nodes free for
// large pods.
enum class Packing { kLeastAllocated, kMostAllocated };

struct Placement {
  World world;  // with the pods that were placed
  Packing packing = Packing::kLeastAllocated;
  std::vector<const Role*> roles;
  std::vector<std::int64_t> placed;             // one number for each role
  std::map<std::size_t, std::int64_t> by_node;  // pods of all roles

  // Returns the first role that lacks a pod, or nullptr.
  const Role* find_incomplete() const;
  std::int64_t placed_of(const Role& role) const;
};

// Places the pods of a role after those of the roles before it. Those that find no node are left
// out. The snapshot and the roles outlive the placement.
Placement place(const Snapshot& snapshot, World::Pods pods, std::vector<const Role*> roles,
                Packing packing);

// Returns the rule that keeps a pod of the role from a node; nullopt if it may go there.
class RoleRules {
 public:
  RoleRules(const Role& role, const World& world);
  std::optional<Rule> find_obstacle(const World::State& state) const;
  // Asks the rules that depend on pods.
  std::optional<Rule> find_obstacle_of_pods(const World::State& state) const;
  static std::optional<Rule> find_obstacle_of_node(const PodRequest& pod, const Node& node);
  void placed(const World::State& state);
  // Returns whether a node that refuses a pod refuses all later ones, and a node that takes one
  // loses nothing by pods on other nodes.
  bool is_local() const { return is_local_; }
  const Amounts& requests() const { return requests_; }

 private:
  const PodRequest& pod_;
  Amounts requests_;
  PodTopologySpread spread_;
  InterPodAffinity affinity_;
  bool is_local_;
};

}  // namespace trainer::fit
