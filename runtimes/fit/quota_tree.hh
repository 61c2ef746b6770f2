// The quotas of a cohort are a tree: its leaves are ClusterQueues, the others are Cohorts. A node
// may use what its subtree has, and may borrow from its parent what others lend (Kueue,
// pkg/cache/scheduler/resource_node.go). Pure.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace trainer::fit {

struct FlavorResource {
  std::string flavor;
  std::size_t resource = 0;  // in a ResourceTable
  friend auto operator<=>(const FlavorResource&, const FlavorResource&) = default;
};
using FlavorUsage = std::map<FlavorResource, std::int64_t>;
using FlavorSet = std::set<FlavorResource>;

std::int64_t amount_of(const FlavorUsage& usage, const FlavorResource& at);

struct FlavorQuota {
  std::int64_t nominal = 0;
  std::optional<std::int64_t> borrowing;  // nullopt says without limit
  std::optional<std::int64_t> lending;
};
using FlavorQuotas = std::map<FlavorResource, FlavorQuota>;

class QuotaTree {
 public:
  using Index = std::size_t;
  static constexpr Index kNone = static_cast<Index>(-1);
  // This is more than any quota, and two of them can be added.
  static constexpr std::int64_t kUnlimited = INT64_MAX / 4;

  struct Node {
    std::string name;
    bool is_queue = false;
    bool is_active = true;  // a queue that is not admits nothing, and its workloads are no victims
    Index parent = kNone;
    FlavorQuotas quotas;
    FlavorUsage usage;    // given for a queue; the tree adds it up for a cohort
    FlavorUsage subtree;  // the tree adds it up: the quota of the node and of those below
  };

  // `outside`: the root has a parent that could not be read, which has this much left of each
  // flavor; nullopt says that it has none. Parents form no circle.
  explicit QuotaTree(std::vector<Node> nodes, std::optional<std::int64_t> outside = std::nullopt);

  const Node& node(Index index) const { return nodes_[index]; }
  Index find_queue(const std::string& name) const;
  const std::vector<Index>& children(Index index) const { return children_[index]; }
  bool has_parent(Index index) const { return nodes_[index].parent != kNone || outside_; }
  // Returns the nodes above, from the parent to the root.
  std::vector<Index> path(Index index) const;
  const FlavorQuota& quota(Index index, const FlavorResource& at) const;

  // Returns what is left for a node, with what it may borrow; negative if too much is in use.
  std::int64_t available(Index index, const FlavorResource& at) const;
  // Returns what a node could use if nothing were in use.
  std::int64_t capacity(Index index, const FlavorResource& at) const;
  // A negative amount takes usage away.
  void add_usage(Index index, const FlavorResource& at, std::int64_t amount);
  void add_usage(Index index, const FlavorUsage& usage, int times = 1);

  bool borrows_with(Index index, const FlavorResource& at, std::int64_t more) const;
  bool is_within_nominal(Index index, const FlavorSet& flavors) const;
  // Returns whether the requests fit into the node's own quota, and what is left of them for its
  // parent.
  std::pair<bool, FlavorUsage> fit_into(Index index, const FlavorUsage& requests) const;
  // Returns the height of the lowest subtree that has room for so much more of a queue, and whether
  // it is smaller than the tree. 0 is the queue itself, which then does not borrow.
  std::pair<int, bool> find_lowest(Index queue, const FlavorResource& at, std::int64_t more) const;

 private:
  void add_up(Index index);
  int height(Index index) const;
  std::int64_t local_quota(Index index, const FlavorResource& at) const;
  std::int64_t local_available(Index index, const FlavorResource& at) const;

  std::vector<Node> nodes_;
  std::vector<std::vector<Index>> children_;
  std::vector<Index> by_name_;  // queues
  std::optional<std::int64_t> outside_;
};

}  // namespace trainer::fit
