#include "runtimes/fit/kueue_order.hh"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "kube/model/saturating.hh"
#include "runtimes/fit/preemption.hh"

namespace trainer::fit {
namespace {

using kube::saturating_add;

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

// Returns the usage that Kueue keeps free for a workload that waits for preemption.
FlavorUsage reserve_for(const Head& head, const QuotaTree& tree, QuotaTree::Index queue) {
  FlavorUsage reserved;
  for (const auto& [at, amount] : head.assignment.usage) {
    const FlavorQuota& quota = tree.quota(queue, at);
    const std::int64_t used = amount_of(tree.node(queue).usage, at);
    const std::int64_t own = saturating_add(quota.nominal, -used);
    if (head.assignment.borrowing == 0)
      reserved[at] = std::max<std::int64_t>(0, std::min(amount, own));
    else
      reserved[at] =
          quota.borrowing ? std::min(amount, saturating_add(own, *quota.borrowing)) : amount;
  }
  return reserved;
}

std::vector<Head> find_heads(const KueueState& state, QuotaTree& tree, const Contender& job) {
  std::vector<Head> heads;
  for (const auto& [name, queue] : state.queues) {
    const bool counts = &queue != job.queue && queue.is_strict && queue.inactive.empty() &&
                        tree.find_queue(name) != QuotaTree::kNone;
    if (!counts) continue;
    const auto workloads = state.workloads_of(name);
    const auto first = std::ranges::find_if(workloads, &QueuedWorkload::is_waiting);
    if (first == workloads.end()) continue;
    const Contender its{&queue, &first->roles, first->priority, first->created};
    Head head{&*first, its, assign_flavors(state, tree, its, true)};
    heads.push_back(std::move(head));
  }
  return heads;
}

// This is one cycle of Kueue's scheduler. The workloads that another one preempts are found in the
// snapshot of the cycle, and those after it in the cycle may use what it leaves.
class Cycle {
 public:
  Cycle(const KueueState& state, const QuotaTree& tree)
      : state_(state), snapshot_(tree), after_(tree), freed_(tree) {}

  void ask(const Head& head) {
    const QuotaTree::Index queue = snapshot_.find_queue(head.job.queue->name);
    const FlavorUsage& usage = head.assignment.usage;
    std::vector<const QueuedWorkload*> targets;
    if (head.assignment.is_preempting()) {
      targets = find_targets(state_, snapshot_, head.job, usage, head.assignment.scarce());
      if (targets.empty()) {
        if (head.job.queue->preemption.reclaim != "Any")
          add(queue, reserve_for(head, after_, queue));
        return;
      }
    }
    if (std::ranges::any_of(targets, [this](auto* each) { return preempted_.contains(each); }))
      return;
    change(targets, -1);
    if (fits(queue, usage)) {
      preempted_.insert(targets.begin(), targets.end());
      add(queue, usage);
    } else {
      change(targets, 1);
    }
  }

  bool fits(QuotaTree::Index queue, const FlavorUsage& usage) const {
    return std::ranges::all_of(usage, [&](const auto& each) {
      return each.second <= std::max<std::int64_t>(0, freed_.available(queue, each.first));
    });
  }

 private:
  void add(QuotaTree::Index queue, const FlavorUsage& usage) {
    after_.add_usage(queue, usage);
    freed_.add_usage(queue, usage);
  }

  void change(const std::vector<const QueuedWorkload*>& targets, int times) {
    for (const QueuedWorkload* each : targets)
      freed_.add_usage(freed_.find_queue(each->cluster_queue), each->usage, times);
  }

  const KueueState& state_;
  QuotaTree snapshot_;
  QuotaTree after_;  // with what those before get
  QuotaTree freed_;  // the same, without what they preempt
  std::set<const QueuedWorkload*> preempted_;
};

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
  for (const QueuedWorkload& each : state.workloads_of(job.queue->name)) {
    if (!each.is_waiting() || state.is_own(each, ns)) continue;
    ++found.pending;
    if (comes_before(each, job)) ++found.position;
  }
  return found;
}

std::optional<QueuedWorkload> find_earlier(const KueueState& state, QuotaTree& tree,
                                           const Contender& job, const Assignment& assignment) {
  std::vector<Head> heads = find_heads(state, tree, job);
  std::ranges::stable_sort(heads, [](const Head& a, const Head& b) {
    return std::tuple(a.assignment.borrowing, b.job.priority, a.job.created) <
           std::tuple(b.assignment.borrowing, a.job.priority, b.job.created);
  });
  Cycle cycle(state, tree);
  const QuotaTree::Index own = tree.find_queue(job.queue->name);
  for (const Head& head : heads) {
    const bool is_before = head.assignment.borrowing != assignment.borrowing
                               ? head.assignment.borrowing < assignment.borrowing
                               : comes_before(*head.workload, job);
    if (!is_before || head.assignment.mode == FlavorMode::kNoFit) continue;
    cycle.ask(head);
    if (!cycle.fits(own, assignment.usage)) return *head.workload;
  }
  return std::nullopt;
}

}  // namespace trainer::fit
