// The world is the cluster while pods of a job are placed in it, one after the other. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "runtimes/fit/asked.hh"
#include "runtimes/fit/snapshot.hh"

namespace trainer::fit {

class World {
 public:
  struct State {
    const Node* node = nullptr;
    Amounts used;
    // The scheduler takes some CPU and memory for pods that ask for none when it scores nodes.
    std::int64_t scored_cpu = 0;
    std::int64_t scored_memory = 0;
    // The groups of the pods on the node, and how many of each.
    std::vector<std::pair<const PodGroup*, std::int64_t>> pods;
  };

  static std::int64_t scored_cpu(const Amounts& requests);
  static std::int64_t scored_memory(const Amounts& requests);

  // kEmptied has of the pods only those that each node keeps.
  enum class Pods { kRunning, kEmptied };
  // The snapshot outlives the world.
  World(const Snapshot& snapshot, Pods pods);
  World(World&&) = default;
  World& operator=(World&&) = default;

  const Snapshot& snapshot() const { return *snapshot_; }
  const std::vector<State>& nodes() const { return nodes_; }
  bool has_anti_affinity() const { return has_anti_affinity_; }

  // Makes the group of a role's pods, for place().
  const PodGroup& add_group(const Role& role);
  void place(std::size_t node, const PodGroup& group);
  // Returns how much of a resource a node has left; at least 0.
  std::int64_t free(const State& state, std::size_t resource) const;

 private:
  static void add(const Amounts& requests, std::int64_t count, State& state);

  const Snapshot* snapshot_;
  std::vector<State> nodes_;
  std::deque<PodGroup> groups_;  // those of roles; references stay valid
  bool has_anti_affinity_ = false;
};

}  // namespace trainer::fit
