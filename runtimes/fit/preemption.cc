#include "runtimes/fit/preemption.hh"

#include <algorithm>
#include <iterator>

namespace trainer::fit {
namespace {

using Index = QuotaTree::Index;

// This says how the job may preempt a workload of another ClusterQueue.
enum class Variant {
  kWithinQueue,
  kHierarchical,      // the job is closer to the quota than the workload is
  kWithoutBorrowing,  // only if the job itself would not borrow
  kWhileBorrowing,
};

struct Candidate {
  const QueuedWorkload* workload = nullptr;
  Index queue = QuotaTree::kNone;
  Index common = QuotaTree::kNone;  // the lowest Cohort above both
  Variant variant = Variant::kWithinQueue;
};

class TargetFinder {
 public:
  TargetFinder(const KueueState& state, QuotaTree& tree, const Contender& job,
               const FlavorUsage& requests, const FlavorSet& scarce)
      : state_(state),
        tree_(tree),
        job_(job),
        policy_(job.queue->preemption),
        requests_(requests),
        scarce_(scarce),
        own_(tree_.find_queue(job.queue->name)) {}

  std::vector<const QueuedWorkload*> run() {
    if (policy_.within_queue != "Never") collect_from(own_, QuotaTree::kNone, false, same_queue_);
    collect_from_cohort();
    std::vector<Candidate> all = in_order();
    for (const bool may_borrow : attempts()) {
      auto found = attempt(all, may_borrow);
      if (!found.empty()) return found;
    }
    return {};
  }

 private:
  bool uses_scarce(const QueuedWorkload& workload) const {
    return std::ranges::any_of(workload.usage, [this](const auto& used) {
      return used.second > 0 && scarce_.contains(used.first);
    });
  }

  bool allows(const std::string& policy, const QueuedWorkload& workload) const {
    if (policy == "Any" || job_.priority > workload.priority) return policy != "Never";
    return policy == "LowerOrNewerEqualPriority" && job_.priority == workload.priority &&
           job_.created < workload.created;
  }

  Variant variant_of(const QueuedWorkload& workload, Index queue, bool has_advantage) const {
    if (queue == own_) return Variant::kWithinQueue;
    if (has_advantage) return Variant::kHierarchical;
    const bool is_above =
        workload.priority >= job_.priority ||
        (policy_.borrow_threshold && workload.priority > *policy_.borrow_threshold);
    return policy_.may_borrow && !is_above ? Variant::kWhileBorrowing : Variant::kWithoutBorrowing;
  }

  void collect_from(Index queue, Index common, bool has_advantage,
                    std::vector<Candidate>& candidates) const {
    const std::string& policy = queue == own_ ? policy_.within_queue : policy_.reclaim;
    for (const QueuedWorkload& each : state_.workloads_of(tree_.node(queue).name)) {
      if (each.is_waiting() || !uses_scarce(each) || !allows(policy, each)) continue;
      candidates.push_back({&each, queue, common, variant_of(each, queue, has_advantage)});
    }
  }

  // Only workloads of queues that use more than their own can be reclaimed. Kueue has no workloads
  // of a queue that is not active.
  void collect_below(Index cohort, Index common, Index skipped, bool has_advantage,
                     std::vector<Candidate>& candidates) const {
    for (const Index child : tree_.children(cohort)) {
      if (child == skipped || child == own_ || !tree_.node(child).is_active) continue;
      if (tree_.is_within_nominal(child, scarce_)) continue;
      if (tree_.node(child).is_queue)
        collect_from(child, common, has_advantage, candidates);
      else
        collect_below(child, common, skipped, has_advantage, candidates);
    }
  }

  void collect_from_cohort() {
    if (policy_.reclaim == "Never") return;
    Index below = QuotaTree::kNone;
    auto [has_advantage, left] = tree_.fit_into(own_, requests_);
    for (const Index cohort : tree_.path(own_)) {
      collect_below(cohort, cohort, below, has_advantage,
                    has_advantage ? hierarchical_ : by_priority_);
      auto [fits, rest] = tree_.fit_into(cohort, left);
      left = std::move(rest);
      has_advantage |= fits;
      below = cohort;
    }
  }

  // Those that are being evicted come first; then those of other queues.
  std::vector<Candidate> in_order() {
    std::vector<Candidate> all;
    for (const bool is_evicted : {true, false})
      for (std::vector<Candidate>* list : {&hierarchical_, &by_priority_, &same_queue_}) {
        std::ranges::stable_sort(*list, [](const Candidate& a, const Candidate& b) {
          if (a.workload->priority != b.workload->priority)
            return a.workload->priority < b.workload->priority;
          return b.workload->reserved_since < a.workload->reserved_since;
        });
        std::ranges::copy_if(*list, std::back_inserter(all), [is_evicted](const Candidate& each) {
          return each.workload->is_evicted == is_evicted;
        });
      }
    return all;
  }

  bool is_under_nominal() const {
    return std::ranges::all_of(scarce_, [this](const FlavorResource& at) {
      return amount_of(tree_.node(own_).usage, at) < tree_.quota(own_, at).nominal;
    });
  }

  // Returns whether the job may borrow, for each attempt.
  std::vector<bool> attempts() const {
    const bool is_alone = hierarchical_.empty() && by_priority_.empty();
    if (is_alone || (!policy_.may_borrow && !is_under_nominal())) return {true};
    if (!policy_.may_borrow && hierarchical_.empty()) return {false, true};
    return {true, false};
  }

  bool fits(bool may_borrow) const {
    return std::ranges::all_of(requests_, [&](const auto& request) {
      if (!may_borrow && tree_.borrows_with(own_, request.first, request.second)) return false;
      return request.second <= std::max<std::int64_t>(0, tree_.available(own_, request.first));
    });
  }

  bool is_valid(const Candidate& each, bool may_borrow) const {
    if (each.queue == own_) return true;
    if (may_borrow && each.variant == Variant::kWithoutBorrowing) return false;
    if (tree_.is_within_nominal(each.queue, scarce_)) return false;
    for (const Index cohort : tree_.path(each.queue)) {
      if (cohort == each.common) break;
      if (tree_.is_within_nominal(cohort, scarce_)) return false;
    }
    return true;
  }

  // Workloads are taken away until the job fits. Then those without which it still fits come back.
  std::vector<const QueuedWorkload*> attempt(const std::vector<Candidate>& all, bool may_borrow) {
    std::vector<Candidate> taken;
    bool is_enough = false;
    for (std::size_t i = 0; i < all.size() && !is_enough; ++i) {
      if (!is_valid(all[i], may_borrow)) continue;
      tree_.add_usage(all[i].queue, all[i].workload->usage, -1);
      taken.push_back(all[i]);
      is_enough = fits(may_borrow);
    }
    std::vector<Candidate> targets;
    for (std::size_t i = taken.size(); is_enough && i-- > 0;) {
      if (i + 1 < taken.size()) {
        tree_.add_usage(taken[i].queue, taken[i].workload->usage);
        if (fits(may_borrow)) continue;
        tree_.add_usage(taken[i].queue, taken[i].workload->usage, -1);
      }
      targets.push_back(taken[i]);
    }
    std::vector<const QueuedWorkload*> found;
    for (const Candidate& each : targets) found.push_back(each.workload);
    for (const Candidate& each : is_enough ? targets : taken)
      tree_.add_usage(each.queue, each.workload->usage);
    return found;
  }

  const KueueState& state_;
  QuotaTree& tree_;
  const Contender& job_;
  const ClusterQueue::Preemption& policy_;
  const FlavorUsage& requests_;
  const FlavorSet& scarce_;
  Index own_;
  std::vector<Candidate> same_queue_, by_priority_, hierarchical_;
};

}  // namespace

std::vector<const QueuedWorkload*> find_targets(const KueueState& state, QuotaTree& tree,
                                                const Contender& job, const FlavorUsage& requests,
                                                const FlavorSet& scarce) {
  const ClusterQueue::Preemption& policy = job.queue->preemption;
  if (policy.within_queue == "Never" && policy.reclaim == "Never") return {};
  return TargetFinder(state, tree, job, requests, scarce).run();
}

}  // namespace trainer::fit
