#include "runtimes/fit/flavor_assigner.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "kube/model/saturating.hh"
#include "runtimes/fit/preemption.hh"

namespace trainer::fit {
namespace {

using Choices = std::map<std::size_t, FlavorChoice>;  // by resource
using Keys = std::set<std::string, std::less<>>;

struct Grade {
  FlavorMode mode = FlavorMode::kFit;
  int borrowing = 0;
};

// `has_newer_rule`: a flavor in which no workloads can be preempted comes behind all that can be
// used, whatever flavorFungibility.preference is. Later versions of Kueue than 0.17.0 have this
// rule.
bool is_preferred(Grade a, Grade b, const ClusterQueue::Fungibility& policy, bool has_newer_rule) {
  if (a.mode == FlavorMode::kNoFit) return false;
  if (b.mode == FlavorMode::kNoFit) return true;
  const bool is_unusable = a.mode == FlavorMode::kNoCandidates;
  if (has_newer_rule && is_unusable != (b.mode == FlavorMode::kNoCandidates)) return !is_unusable;
  const bool lends_less = a.borrowing < b.borrowing;
  if (policy.prefers_preemption) return a.borrowing != b.borrowing ? lends_less : a.mode > b.mode;
  return a.mode != b.mode ? a.mode > b.mode : lends_less;
}

bool tries_next(Grade grade, const ClusterQueue::Fungibility& policy) {
  if (grade.mode == FlavorMode::kNoFit || grade.mode == FlavorMode::kNoCandidates) return true;
  if (grade.mode != FlavorMode::kFit && policy.tries_next_to_preempt) return true;
  return grade.borrowing > 0 && policy.tries_next_to_borrow;
}

// Only labels with these keys are compared. A term of node affinity without any of them allows
// every flavor.
bool allows_labels(const PodRequest& pod, const kube::StringMap& labels, const Keys& keys) {
  for (const auto& [key, value] : pod.node_selector) {
    const auto at = labels.find(key);
    if (keys.contains(key) && (at == labels.end() || at->second != value)) return false;
  }
  bool is_any = !pod.node_terms || pod.node_terms->empty();
  for (const NodeTerm& term : pod.node_terms.value_or(std::vector<NodeTerm>())) {
    std::vector<Requirement> known;
    std::ranges::copy_if(term.labels, std::back_inserter(known),
                         [&keys](const Requirement& each) { return keys.contains(each.key); });
    if (known.empty()) return true;
    is_any |= match_all(known, labels);
  }
  return is_any;
}

std::string print_labels(const kube::StringMap& labels) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : labels) texts.push_back(fmt::format("{}={}", key, value));
  return fmt::format("{}", fmt::join(texts, ", "));
}

class Assigner {
 public:
  Assigner(const KueueState& state, QuotaTree& tree, const Contender& job, bool is_optimistic)
      : state_(state),
        tree_(tree),
        job_(job),
        queue_(*job.queue),
        is_optimistic_(is_optimistic),
        own_(tree.find_queue(queue_.name)) {}

  Assignment run() {
    for (const Role& role : *job_.roles) {
      Choices choices;
      if (role.pods > 0 && !assign(role, choices)) {
        result_.mode = FlavorMode::kNoFit;
        return std::move(result_);
      }
      const Amounts amounts = sum_of(role, state_.resources);
      for (const auto& [resource, choice] : choices) {
        std::int64_t& used = result_.usage[{choice.flavor, resource}];
        used = kube::saturating_add(used, amounts[resource]);
        result_.borrowing = std::max(result_.borrowing, choice.borrowing);
        result_.mode = std::min(result_.mode, choice.mode);
      }
      result_.roles.push_back(std::move(choices));
    }
    return std::move(result_);
  }

 private:
  // Assigns a flavor to each resource of a role. All resources of a group get the same one.
  bool assign(const Role& role, Choices& choices) {
    obstacles_.clear();
    const Amounts amounts = sum_of(role, state_.resources);
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      const ClusterQueue::Group* group = queue_.find_group(i);
      const bool is_counted = amounts[i] > 0 && (group != nullptr || i != ResourceTable::kPods);
      if (!is_counted || choices.contains(i)) continue;
      if (group == nullptr)
        refuse(role, fmt::format("{} has no quota of {}, and the job asks for {}", queue_.name,
                                 state_.resources.name(i), state_.resources.print(i, amounts[i])));
      auto chosen = group == nullptr ? std::nullopt : choose(role, *group, amounts);
      if (!chosen) {
        result_.obstacles = std::move(obstacles_);
        return false;
      }
      choices.merge(*chosen);
    }
    const bool is_fit = std::ranges::all_of(
        choices, [](const auto& each) { return each.second.mode == FlavorMode::kFit; });
    if (!is_fit) std::ranges::move(obstacles_, std::back_inserter(result_.obstacles));
    return true;
  }

  std::optional<Choices> choose(const Role& role, const ClusterQueue::Group& group,
                                const Amounts& amounts) {
    std::optional<Choices> best;
    Grade best_grade{FlavorMode::kNoFit, std::numeric_limits<int>::max()};
    for (const std::string& flavor : group.flavors) {
      if (!allows(role, group, flavor)) continue;
      Choices choices;
      const Grade grade = try_flavor(role, group, flavor, amounts, choices);
      const bool is_last = !tries_next(grade, queue_.fungibility);
      if (is_last || is_preferred(grade, best_grade, queue_.fungibility, is_optimistic_)) {
        best = std::move(choices);
        best_grade = grade;
      }
      if (is_last) break;
    }
    return best;
  }

  Grade try_flavor(const Role& role, const ClusterQueue::Group& group, const std::string& flavor,
                   const Amounts& amounts, Choices& choices) {
    Grade worst;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      if (!group.covers[i] || amounts[i] == 0) continue;
      const Grade grade = compare(role, {flavor, i}, amounts[i]);
      if (is_preferred(worst, grade, queue_.fungibility, is_optimistic_) ||
          grade.mode == FlavorMode::kNoFit)
        worst = grade;
      if (worst.mode == FlavorMode::kNoFit) break;
      choices[i] = {flavor, grade.mode, grade.borrowing};
    }
    return worst;
  }

  Grade compare(const Role& role, const FlavorResource& at, std::int64_t amount) {
    const std::int64_t wanted = kube::saturating_add(amount_of(result_.usage, at), amount);
    const std::int64_t most = tree_.capacity(own_, at);
    if (wanted > most) {
      refuse_quota(role, at, wanted, most, "at most {}");
      return {FlavorMode::kNoFit, 0};
    }
    const auto [borrowing, is_below_root] = tree_.find_lowest(own_, at, wanted);
    const std::int64_t left = std::max<std::int64_t>(0, tree_.available(own_, at));
    if (wanted <= left) return {FlavorMode::kFit, borrowing};
    refuse_quota(role, at, wanted, left, "{} now");
    const bool may_preempt =
        wanted <= tree_.quota(own_, at).nominal || is_below_root || queue_.preemption.may_borrow;
    if (!may_preempt) return {FlavorMode::kNoFit, borrowing};
    return simulate(at, wanted, borrowing);
  }

  Grade simulate(const FlavorResource& at, std::int64_t wanted, int borrowing) {
    const auto targets = find_targets(state_, tree_, job_, {{at, wanted}}, {at});
    if (targets.empty()) return {FlavorMode::kNoCandidates, borrowing};
    bool is_reclaim = true;
    for (const QueuedWorkload* each : targets) {
      tree_.add_usage(tree_.find_queue(each->cluster_queue), each->usage, -1);
      is_reclaim &= each->cluster_queue != queue_.name;
    }
    const int lowest = tree_.find_lowest(own_, at, wanted).first;
    for (const QueuedWorkload* each : targets)
      tree_.add_usage(tree_.find_queue(each->cluster_queue), each->usage);
    return {is_reclaim ? FlavorMode::kReclaim : FlavorMode::kPreempt, lowest};
  }

  // Returns whether the pods may go to the flavor's nodes.
  bool allows(const Role& role, const ClusterQueue::Group& group, const std::string& name) {
    const ResourceFlavor* flavor = state_.find_flavor(name);
    if (flavor == nullptr) {
      if (!state_.flavors_unread.empty() && is_optimistic_) return true;
      refuse(role,
             fmt::format("the flavor {}: {}", name,
                         state_.flavors_unread.empty() ? "not found" : state_.flavors_unread));
      return false;
    }
    for (const Taint& taint : flavor->taints) {
      const bool is_hard = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
      const bool is_tolerated =
          role.pod.tolerates(taint) ||
          std::ranges::any_of(flavor->tolerations,
                              [&taint](const Toleration& each) { return each.tolerates(taint); });
      if (!is_hard || is_tolerated) continue;
      refuse(role,
             fmt::format("the flavor {} of {} has the taint {}, which the pods do not tolerate",
                         name, queue_.name, taint.to_string()),
             fmt::format("a toleration of {} would allow it", taint.to_string()));
      return false;
    }
    if (allows_labels(role.pod, flavor->labels, keys_of(group, *flavor))) return true;
    refuse(role, fmt::format("the node labels of the flavor {} of {} ({}) contradict the job's "
                             "node selector or node affinity",
                             name, queue_.name, print_labels(flavor->labels)));
    return false;
  }

  // Some versions of Kueue compare the keys of all flavors of the group (0.17.0, 0.18.0), later
  // ones only those of the flavor itself.
  Keys keys_of(const ClusterQueue::Group& group, const ResourceFlavor& flavor) const {
    Keys keys;
    for (const auto& [key, value] : flavor.labels) keys.insert(key);
    if (is_optimistic_) return keys;
    for (const std::string& name : group.flavors)
      if (const ResourceFlavor* other = state_.find_flavor(name))
        for (const auto& [key, value] : other->labels) keys.insert(key);
    return keys;
  }

  void refuse_quota(const Role& role, const FlavorResource& at, std::int64_t wanted,
                    std::int64_t left, std::string_view form) {
    const ResourceTable& table = state_.resources;
    const auto print = [&](std::int64_t amount) { return table.print(at.resource, amount); };
    std::string message =
        fmt::format("the flavor {} of {} has a quota of {} {}, {} are reserved, and ", at.flavor,
                    queue_.name, print(tree_.quota(own_, at).nominal), table.name(at.resource),
                    print(amount_of(tree_.node(own_).usage, at)));
    if (tree_.has_parent(own_) && left < QuotaTree::kUnlimited / 2)
      message += fmt::format("with its cohort {} it may have {}; ", queue_.cohort,
                             fmt::format(fmt::runtime(form), print(left)));
    refuse(role, message + fmt::format("the job asks for {}", print(wanted)));
    obstacles_.back().at = at;
  }

  void refuse(const Role& role, std::string message, std::string change = {}) {
    obstacles_.push_back({role.name, std::move(message), std::move(change), std::nullopt});
  }

  const KueueState& state_;
  QuotaTree& tree_;
  const Contender& job_;
  const ClusterQueue& queue_;
  bool is_optimistic_;
  QuotaTree::Index own_;
  Assignment result_;
  std::vector<FlavorObstacle> obstacles_;
};

}  // namespace

FlavorSet Assignment::scarce() const {
  FlavorSet found;
  for (const auto& choices : roles)
    for (const auto& [resource, choice] : choices)
      if (choice.mode != FlavorMode::kFit) found.insert({choice.flavor, resource});
  return found;
}

Assignment assign_flavors(const KueueState& state, QuotaTree& tree, const Contender& job,
                          bool is_optimistic) {
  return Assigner(state, tree, job, is_optimistic).run();
}

}  // namespace trainer::fit
