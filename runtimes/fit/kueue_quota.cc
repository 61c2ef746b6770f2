#include "runtimes/fit/kueue_quota.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "kube/model/saturating.hh"
#include "kube/model/text.hh"
#include "runtimes/fit/flavor_assigner.hh"
#include "runtimes/fit/kueue_order.hh"
#include "runtimes/fit/preemption.hh"

namespace trainer::fit {
namespace {

Holder holder_of(const QueuedWorkload& workload) {
  const bool has_owner = !workload.owner_name.empty();
  return {has_owner ? kube::to_lower(workload.owner_kind) : "workload", workload.ns,
          has_owner ? workload.owner_name : workload.name, workload.reserved_since};
}

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

class Answerer {
 public:
  Answerer(const Asked& asked, const KueueState& state, const ClusterQueue& queue)
      : asked_(asked), state_(state), queue_(queue) {
    job_.queue = &queue;
    job_.roles = &asked.roles;
    job_.priority = state.priority;
    // A job that is not in the cluster will be younger than all others.
    job_.created = state.job_created.value_or(kube::Time::from_seconds(INT64_MAX / 2'000'000));
    answer_.plan.cluster_queue = queue.name;
    answer_.plan.cohort = queue.cohort;
    answer_.roles = asked.roles;
  }

  QueueAnswer run() {
    auto optimistic = state_.tree(true);
    auto pessimistic = state_.tree(false);
    auto empty = state_.empty_tree();
    if (!optimistic || !pessimistic || !empty) {
      refuse(Verdict::kWaits,
             fmt::format("is in cohort {}, whose spec.parentName leads back to itself: correct it",
                         queue_.cohort));
      return std::move(answer_);
    }
    const QueuePosition position = position_of(state_, job_, asked_.ns);
    answer_.plan.position = position.position;
    answer_.plan.pending = position.pending;
    const Assignment best = assign_flavors(state_, *optimistic, job_, true);
    const Assignment worst = assign_flavors(state_, *pessimistic, job_, false);
    // Flavors are chosen one after the other, so a job may fit now and not where all is free.
    const bool is_never = best.mode == FlavorMode::kNoFit &&
                          assign_flavors(state_, *empty, job_, true).mode == FlavorMode::kNoFit;
    if (is_never)
      refuse_flavors(Verdict::kNever, best, *optimistic);
    else if (best.mode != FlavorMode::kFit)
      wait(position, best, *optimistic);
    else if (worst.mode != FlavorMode::kFit)
      refuse_flavors(Verdict::kUnknown, worst, *pessimistic);
    else
      ask_order(position, *optimistic, best);
    if (!is_never && best.mode != FlavorMode::kNoFit) add_flavors(best, *optimistic);
    check_queue();
    add_undecided();
    return std::move(answer_);
  }

 private:
  void add_reason(Verdict verdict, Reason reason) {
    const bool is_worse = verdict > answer_.verdict;
    answer_.verdict = std::max(answer_.verdict, verdict);
    if (reason.rule.empty()) reason.rule = "ClusterQueue";
    answer_.reasons.insert(is_worse ? answer_.reasons.begin() : answer_.reasons.end(),
                           std::move(reason));
  }

  void refuse(Verdict verdict, std::string_view what) {
    Reason reason;
    reason.message = fmt::format("{} {}", queue_.name, what);
    add_reason(verdict, std::move(reason));
  }

  // Things that do not depend on quota.
  void check_queue() {
    if (!queue_.inactive.empty()) refuse(Verdict::kWaits, queue_.inactive);
    if (!state_.local_queue_inactive.empty()) {
      Reason reason;
      reason.rule = "LocalQueue";
      reason.message =
          fmt::format("{}/{} {}", asked_.ns, asked_.queue, state_.local_queue_inactive);
      add_reason(Verdict::kWaits, std::move(reason));
    }
    check_namespace();
  }

  // Without its labels, the one label of a namespace that is known is its name.
  void check_namespace() {
    const LabelSelector& selector = queue_.namespaces;
    if (selector.is_absent)
      return refuse(Verdict::kNever,
                    "takes no jobs: it has no spec.namespaceSelector; {} would "
                    "take those of all namespaces");
    const kube::StringMap labels =
        state_.namespace_labels.value_or(kube::StringMap{{std::string(kNameLabel), asked_.ns}});
    const bool is_known = state_.namespace_labels.has_value();
    std::vector<Requirement> known;
    std::ranges::copy_if(selector.requirements, std::back_inserter(known),
                         [&](const auto& each) { return is_known || each.key == kNameLabel; });
    const std::string shown = print_all(selector.requirements);
    if (!match_all(known, labels))
      refuse(
          Verdict::kNever,
          fmt::format("takes jobs of namespaces with {} (spec.namespaceSelector), and not of {}: "
                      "use a queue of another ClusterQueue, or label the namespace",
                      shown, asked_.ns));
    else if (known.size() < selector.requirements.size())
      refuse(
          Verdict::kUnknown,
          fmt::format("takes jobs of namespaces with {} (spec.namespaceSelector), and the labels "
                      "of {} could not be read: ask for the right to get the namespace",
                      shown, asked_.ns));
  }

  // Each flavor that was tried has a reason of its own.
  void refuse_flavors(Verdict verdict, const Assignment& assignment, const QuotaTree& tree) {
    for (const FlavorObstacle& obstacle : assignment.obstacles) {
      Reason reason;
      reason.role = asked_.roles.size() > 1 ? obstacle.role : "";
      reason.message = obstacle.message;
      reason.change = obstacle.change;
      if (verdict == Verdict::kUnknown && reason.change.empty())
        reason.change = "what could not be read decides it";
      if (verdict == Verdict::kWaits && obstacle.at) add_holders(*obstacle.at, tree, reason);
      add_reason(verdict, std::move(reason));
    }
    if (assignment.obstacles.empty()) refuse(verdict, "has no flavor for the job");
  }

  // Holders of one quota are named once.
  void add_holders(const FlavorResource& at, const QuotaTree& tree, Reason& reason) {
    if (!named_.insert(at).second) return;
    std::vector<const QueuedWorkload*> using_it;
    for (const auto& [queue, workloads] : state_.workloads) {
      if (tree.find_queue(queue) == QuotaTree::kNone) continue;
      for (const QueuedWorkload& each : workloads)
        if (!each.is_waiting() && amount_of(each.usage, at) > 0) using_it.push_back(&each);
    }
    std::ranges::stable_sort(using_it, {}, &QueuedWorkload::reserved_since);
    for (const QueuedWorkload* each : using_it) {
      if (reason.holders.size() == kMaxHolders) break;
      reason.holders.push_back(
          {holder_of(*each), each->pods,
           fmt::format("{} {}", state_.resources.print(at.resource, amount_of(each->usage, at)),
                       state_.resources.name(at.resource)),
           std::nullopt});
    }
    reason.more_holders = static_cast<std::int64_t>(using_it.size() - reason.holders.size());
  }

  void wait(const QueuePosition& position, const Assignment& assignment, QuotaTree& tree) {
    refuse_flavors(Verdict::kWaits, assignment, tree);
    const bool is_first = ask_place(position);
    if (is_first && assignment.is_preempting())
      for (const QueuedWorkload* each :
           find_targets(state_, tree, job_, assignment.usage, assignment.scarce()))
        answer_.plan.preempts.push_back(holder_of(*each));
    if (answer_.plan.preempts.empty()) return;
    Reason reason;
    reason.message = fmt::format(
        "Kueue may preempt {} other workload{} for the job, by the policies of {}",
        answer_.plan.preempts.size(), answer_.plan.preempts.size() == 1 ? "" : "s", queue_.name);
    add_reason(Verdict::kWaits, std::move(reason));
  }

  // Only the first workload of a StrictFIFO queue may be admitted, or preempt others. Returns
  // whether the job may.
  bool ask_place(const QueuePosition& position) {
    if (!queue_.is_strict || position.position == 1) return true;
    const bool is_known = position.position > 0;
    refuse(is_known ? Verdict::kWaits : Verdict::kUnknown,
           fmt::format("is a StrictFIFO queue, and {} {} before the job",
                       is_known ? position.position - 1 : position.pending,
                       !is_known                ? "workloads may wait"
                       : position.position == 2 ? "workload waits"
                                                : "workloads wait"));
    return false;
  }

  // There is enough for the job, unless others come first.
  void ask_order(const QueuePosition& position, QuotaTree& tree, const Assignment& assignment) {
    ask_place(position);
    if (!state_.workloads_unread.empty()) {
      const bool may_be_kept = std::ranges::any_of(state_.queues, [&](const auto& named) {
        const ClusterQueue& each = named.second;
        return &each != &queue_ && each.is_strict && each.pending > 0 &&
               tree.find_queue(each.name) != QuotaTree::kNone;
      });
      if (may_be_kept)
        refuse(Verdict::kUnknown, "has a cohort in which workloads of a StrictFIFO queue wait");
      return;
    }
    if (const auto earlier = find_earlier(state_, tree, job_, assignment))
      refuse(Verdict::kWaits,
             fmt::format("has enough, but what {} of the StrictFIFO queue {} waits "
                         "for is kept free in the cohort",
                         holder_of(*earlier).to_string(), earlier->cluster_queue));
  }

  void add_flavors(const Assignment& assignment, const QuotaTree& tree) {
    for (std::size_t i = 0; i < assignment.roles.size(); ++i) {
      Role& role = answer_.roles[i];
      QueuePlan::Flavors flavors;
      for (const auto& [resource, choice] : assignment.roles[i]) {
        flavors.emplace_back(state_.resources.name(resource), choice.flavor);
        const ResourceFlavor* flavor = state_.find_flavor(choice.flavor);
        if (flavor == nullptr) continue;
        for (const auto& [key, value] : flavor->labels) role.pod.node_selector[key] = value;
        std::ranges::copy(flavor->tolerations, std::back_inserter(role.pod.tolerations));
        if (!flavor->topology.empty()) topologies_.insert(flavor->topology);
      }
      answer_.plan.roles.emplace_back(role.name, std::move(flavors));
    }
    const QuotaTree::Index own = tree.find_queue(queue_.name);
    for (const auto& [at, amount] : assignment.usage) {
      const std::int64_t used = kube::saturating_add(amount_of(tree.node(own).usage, at), amount);
      const std::int64_t over = kube::saturating_add(used, -tree.quota(own, at).nominal);
      if (over <= 0) continue;
      answer_.plan.borrowed.emplace_back(
          state_.resources.name(at.resource),
          state_.resources.print(at.resource, std::min(over, amount)));
    }
  }

  void add_undecided() {
    const auto add = [this](std::string text) { answer_.undecided.push_back(std::move(text)); };
    for (const std::string& check : queue_.checks)
      add(fmt::format("the admission check {} of {} decides, too", check, queue_.name));
    for (const std::string& topology : topologies_)
      add(fmt::format("Kueue chooses the nodes in the topology {}, which is not computed",
                      topology));
    if (!queue_.cohort.empty() && !state_.cohort_unread.empty())
      add(fmt::format("{}, so the cohort {} was not compared", state_.cohort_unread,
                      queue_.cohort));
    if (!state_.flavors_unread.empty())
      add(fmt::format("{}, so the flavors' node labels and taints were not compared",
                      state_.flavors_unread));
    if (!state_.workloads_unread.empty())
      add(fmt::format("{}, so preemption and the order of the queue were not compared",
                      state_.workloads_unread));
    if (!state_.priority_unread.empty())
      add(fmt::format("{}, so the job's priority in the queue counts as 0",
                      state_.priority_unread));
  }

  const Asked& asked_;
  const KueueState& state_;
  const ClusterQueue& queue_;
  Contender job_;
  QueueAnswer answer_;
  std::set<std::string> topologies_;
  FlavorSet named_;  // their holders have been named
};

}  // namespace

QueueAnswer kueue_quota(const Asked& asked, const KueueState& state) {
  const ClusterQueue* queue = state.find_queue(state.queue);
  if (queue == nullptr) {
    QueueAnswer answer;
    answer.roles = asked.roles;
    return answer;
  }
  return Answerer(asked, state, *queue).run();
}

}  // namespace trainer::fit
