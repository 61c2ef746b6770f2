#include "runtimes/fit/kueue_order.hh"

#include <algorithm>
#include <tuple>
#include <vector>

#include "runtimes/fit/preemption.hh"

namespace trainer::fit {
namespace {

bool comes_before(const QueuedWorkload& workload, const Contender& job) {
  if (workload.priority != job.priority) return workload.priority > job.priority;
  return workload.created <= job.created;
}

// This is the first workload of a ClusterQueue, with what it would get now.
struct Head {
  const QueuedWorkload* workload = nullptr;
  Contender job;
  Assignment assignment;
};

bool fits(const QuotaTree& tree, QuotaTree::Index queue, const FlavorUsage& usage) {
  return std::ranges::all_of(usage, [&](const auto& each) {
    return each.second <= std::max<std::int64_t>(0, tree.available(queue, each.first));
  });
}

// Returns the usage that Kueue keeps free for a workload that waits for preemption.
FlavorUsage reserve_for(const Head& head, const QuotaTree& tree, QuotaTree::Index queue) {
  FlavorUsage reserved;
  for (const auto& [at, amount] : head.assignment.usage) {
    const FlavorQuota& quota = tree.quota(queue, at);
    const std::int64_t used = amount_of(tree.node(queue).usage, at);
    const std::int64_t own = quota.nominal - used;
    if (head.assignment.borrowing == 0)
      reserved[at] = std::max<std::int64_t>(0, std::min(amount, own));
    else
      reserved[at] = quota.borrowing ? std::min(amount, own + *quota.borrowing) : amount;
  }
  return reserved;
}

std::vector<Head> find_heads(const KueueState& state, const QuotaTree& tree, const Contender& job) {
  std::vector<Head> heads;
  for (const ClusterQueue& queue : state.queues) {
    const bool counts = &queue != job.queue && queue.is_strict && queue.inactive.empty() &&
                        tree.find_queue(queue.name) != QuotaTree::kNone;
    if (!counts) continue;
    const QueuedWorkload* first = nullptr;
    for (const QueuedWorkload& each : state.workloads)
      if (each.is_waiting() && each.cluster_queue == queue.name &&
          (first == nullptr ||
           std::tuple(-each.priority, each.created) < std::tuple(-first->priority, first->created)))
        first = &each;
    if (first == nullptr) continue;
    const Contender its{&queue, &first->roles, first->priority, first->created};
    Head head{first, its, assign_flavors(state, tree, its, true)};
    heads.push_back(std::move(head));
  }
  return heads;
}

}  // namespace

QueuePosition position_of(const KueueState& state, const Contender& job, const std::string& ns) {
  QueuePosition found{1, 0};
  if (state.pending) {
    bool is_behind = false;
    for (const PendingPosition& each : *state.pending) {
      const bool is_own =
          !state.job_name.empty() && each.ns == ns && each.owner_name == state.job_name;
      is_behind |= is_own;
      if (is_own) continue;
      ++found.pending;
      if (!is_behind && each.priority >= job.priority) ++found.position;
    }
    return found;
  }
  if (!state.workloads_unread.empty()) {
    found.pending = job.queue->pending;
    if (found.pending > 0) found.position = 0;
    return found;
  }
  for (const QueuedWorkload& each : state.workloads) {
    const bool counts =
        each.is_waiting() && each.cluster_queue == job.queue->name && !state.is_own(each, ns);
    if (!counts) continue;
    ++found.pending;
    if (comes_before(each, job)) ++found.position;
  }
  return found;
}

std::optional<QueuedWorkload> find_earlier(const KueueState& state, const QuotaTree& tree,
                                           const Contender& job, const Assignment& assignment) {
  std::vector<Head> heads = find_heads(state, tree, job);
  std::ranges::stable_sort(heads, {}, [](const Head& each) {
    return std::tuple(each.assignment.borrowing, -each.job.priority, each.job.created);
  });
  QuotaTree after = tree;
  const QuotaTree::Index own = tree.find_queue(job.queue->name);
  for (const Head& head : heads) {
    const bool is_before = head.assignment.borrowing != assignment.borrowing
                               ? head.assignment.borrowing < assignment.borrowing
                               : comes_before(*head.workload, job);
    if (!is_before || head.assignment.mode == FlavorMode::kNoFit) continue;
    const QuotaTree::Index queue = tree.find_queue(head.job.queue->name);
    const bool is_kept =
        head.assignment.is_preempting() &&
        find_targets(state, after, head.job, head.assignment.usage, head.assignment.scarce())
            .empty();
    if (!is_kept)
      after.add_usage(queue, head.assignment.usage);
    else if (head.job.queue->preemption.reclaim != "Any")
      after.add_usage(queue, reserve_for(head, after, queue));
    if (!fits(after, own, assignment.usage)) return *head.workload;
  }
  return std::nullopt;
}

}  // namespace trainer::fit
