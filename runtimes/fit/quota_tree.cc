#include "runtimes/fit/quota_tree.hh"

#include <algorithm>

#include "kube/model/saturating.hh"

namespace trainer::fit {
namespace {

using kube::saturating_add;

std::int64_t difference(std::int64_t a, std::int64_t b) {
  return saturating_add(a, -b);
}

}  // namespace

std::int64_t amount_of(const FlavorUsage& usage, const FlavorResource& at) {
  const auto found = usage.find(at);
  return found == usage.end() ? 0 : found->second;
}

QuotaTree::QuotaTree(std::vector<Node> nodes, std::optional<std::int64_t> outside)
    : nodes_(std::move(nodes)), children_(nodes_.size()), outside_(outside) {
  for (Index i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].parent != kNone) children_[nodes_[i].parent].push_back(i);
  for (Index i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].parent == kNone) add_up(i);
  for (Index i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].is_queue) by_name_.push_back(i);
  std::ranges::sort(by_name_, {}, [this](Index i) -> const std::string& { return nodes_[i].name; });
}

void QuotaTree::add_up(Index index) {
  Node& node = nodes_[index];
  for (const auto& [at, quota] : node.quotas) node.subtree[at] = quota.nominal;
  if (node.is_queue) return;
  for (const Index child : children_[index]) {
    add_up(child);
    for (const auto& [at, quota] : nodes_[child].subtree)
      node.subtree[at] =
          saturating_add(node.subtree[at], difference(quota, local_quota(child, at)));
    for (const auto& [at, used] : nodes_[child].usage)
      node.usage[at] = saturating_add(
          node.usage[at], std::max<std::int64_t>(0, difference(used, local_quota(child, at))));
  }
}

QuotaTree::Index QuotaTree::find_queue(const std::string& name) const {
  const auto name_of = [this](Index i) -> const std::string& { return nodes_[i].name; };
  const auto at = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return at == by_name_.end() || name_of(*at) != name ? kNone : *at;
}

std::vector<QuotaTree::Index> QuotaTree::path(Index index) const {
  std::vector<Index> above;
  for (Index at = nodes_[index].parent; at != kNone; at = nodes_[at].parent) above.push_back(at);
  return above;
}

const FlavorQuota& QuotaTree::quota(Index index, const FlavorResource& at) const {
  static const FlavorQuota none;
  const auto found = nodes_[index].quotas.find(at);
  return found == nodes_[index].quotas.end() ? none : found->second;
}

// Returns what the node does not lend.
std::int64_t QuotaTree::local_quota(Index index, const FlavorResource& at) const {
  const auto& lending = quota(index, at).lending;
  if (!lending) return 0;
  return std::max<std::int64_t>(0, difference(amount_of(nodes_[index].subtree, at), *lending));
}

std::int64_t QuotaTree::local_available(Index index, const FlavorResource& at) const {
  return std::max<std::int64_t>(
      0, difference(local_quota(index, at), amount_of(nodes_[index].usage, at)));
}

std::int64_t QuotaTree::available(Index index, const FlavorResource& at) const {
  const Node& node = nodes_[index];
  const std::int64_t subtree = amount_of(node.subtree, at);
  const std::int64_t used = amount_of(node.usage, at);
  if (!has_parent(index)) return difference(subtree, used);
  std::int64_t above = node.parent == kNone ? *outside_ : available(node.parent, at);
  if (const auto& limit = quota(index, at).borrowing) {
    const std::int64_t local = local_quota(index, at);
    const std::int64_t lent = difference(subtree, local);
    const std::int64_t taken = std::max<std::int64_t>(0, difference(used, local));
    above = std::min(above, saturating_add(difference(lent, taken), *limit));
  }
  return saturating_add(local_available(index, at), above);
}

std::int64_t QuotaTree::capacity(Index index, const FlavorResource& at) const {
  const Node& node = nodes_[index];
  const std::int64_t subtree = amount_of(node.subtree, at);
  if (!has_parent(index)) return subtree;
  const std::int64_t above = node.parent == kNone ? kUnlimited : capacity(node.parent, at);
  const std::int64_t all = saturating_add(local_quota(index, at), above);
  const auto& limit = quota(index, at).borrowing;
  return limit ? std::min(all, saturating_add(subtree, *limit)) : all;
}

void QuotaTree::add_usage(Index index, const FlavorResource& at, std::int64_t amount) {
  std::int64_t& used = nodes_[index].usage[at];
  const std::int64_t local = local_quota(index, at);
  const std::int64_t before = std::max<std::int64_t>(0, difference(used, local));
  used = saturating_add(used, amount);
  const std::int64_t after = std::max<std::int64_t>(0, difference(used, local));
  const Index parent = nodes_[index].parent;
  if (parent != kNone && before != after) add_usage(parent, at, difference(after, before));
}

void QuotaTree::add_usage(Index index, const FlavorUsage& usage, int times) {
  for (const auto& [at, amount] : usage) add_usage(index, at, times * amount);
}

bool QuotaTree::borrows_with(Index index, const FlavorResource& at, std::int64_t more) const {
  return saturating_add(amount_of(nodes_[index].usage, at), more) >
         amount_of(nodes_[index].subtree, at);
}

bool QuotaTree::is_within_nominal(Index index, const FlavorSet& flavors) const {
  return std::ranges::none_of(flavors,
                              [&](const FlavorResource& at) { return borrows_with(index, at, 0); });
}

std::pair<bool, FlavorUsage> QuotaTree::fit_into(Index index, const FlavorUsage& requests) const {
  std::pair<bool, FlavorUsage> result{true, {}};
  for (const auto& [at, amount] : requests) {
    if (borrows_with(index, at, amount)) result.first = false;
    result.second[at] = std::max<std::int64_t>(0, difference(amount, local_available(index, at)));
  }
  return result;
}

int QuotaTree::height(Index index) const {
  int highest = children_[index].empty() ? 0 : 1;
  for (const Index child : children_[index])
    if (!nodes_[child].is_queue) highest = std::max(highest, height(child) + 1);
  return highest;
}

std::pair<int, bool> QuotaTree::find_lowest(Index queue, const FlavorResource& at,
                                            std::int64_t more) const {
  if (!borrows_with(queue, at, more) || !has_parent(queue)) return {0, has_parent(queue)};
  more = difference(more, local_available(queue, at));
  const std::vector<Index> above = path(queue);
  for (const Index index : above) {
    if (!borrows_with(index, at, more)) return {height(index), has_parent(index)};
    more = difference(more, local_available(index, at));
  }
  return {above.empty() ? 1 : height(above.back()), false};
}

}  // namespace trainer::fit
