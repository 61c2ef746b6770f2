#include "runtimes/fit/plan_fit.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "kube/model/saturating.hh"
#include "runtimes/fit/explain.hh"
#include "runtimes/fit/kueue_quota.hh"
#include "runtimes/fit/place.hh"
#include "runtimes/fit/resource_quota.hh"

namespace trainer::fit {
namespace {

struct StageAnswer {
  Verdict verdict = Verdict::kFits;
  std::vector<NodeShare> nodes;
  std::vector<Reason> reasons;
  bool is_tight = false;  // the pods fit only by the second attempt
};

std::vector<const Role*> roles_of(const Asked& asked, std::int64_t stage) {
  std::vector<const Role*> roles;
  for (const Role& role : asked.roles)
    if (role.first_stage <= stage && stage <= role.last_stage && role.pods > 0)
      roles.push_back(&role);
  return roles;
}

// A role that asks for more devices, then for more of all, comes first.
std::vector<const Role*> widest_first(std::vector<const Role*> roles,
                                      const ResourceTable& resources) {
  const auto rank = [&resources](const Role* role) {
    Amounts amounts = resources.read(role->pod.requests);
    std::ranges::reverse(amounts);  // devices come last in the table
    return amounts;
  };
  std::ranges::stable_sort(roles,
                           [&rank](const Role* a, const Role* b) { return rank(a) > rank(b); });
  return roles;
}

// Places the pods as the scheduler does, and if that fails again so that little is lost.
Placement try_to_place(const Snapshot& snapshot, World::Pods pods,
                       const std::vector<const Role*>& roles) {
  Placement usual = place(snapshot, pods, roles, Packing::kLeastAllocated);
  if (usual.find_incomplete() == nullptr) return usual;
  Placement packed =
      place(snapshot, pods, widest_first(roles, snapshot.resources), Packing::kMostAllocated);
  return packed.find_incomplete() == nullptr ? std::move(packed) : std::move(usual);
}

std::vector<NodeShare> shares_of(const Placement& placement) {
  const ResourceTable& table = placement.world.snapshot().resources;
  std::vector<NodeShare> shares;
  for (const auto& [index, pods] : placement.by_node) {
    const World::State& state = placement.world.nodes()[index];
    NodeShare share{state.node->name, pods, {}};
    for (std::size_t i = 0; i < table.size(); ++i) {
      const bool is_asked = std::ranges::any_of(placement.roles, [&](const Role* role) {
        return role->pod.requests.contains(table.name(i));
      });
      if (is_asked)
        share.resources.push_back({table.name(i), table.print(i, state.used[i]),
                                   table.print(i, state.node->allocatable[i])});
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

// A pod asks for more devices than any node has: so many pods with so many devices fit.
std::string find_narrower(const Snapshot& snapshot, const Placement& emptied, const Role& role) {
  const ResourceTable& table = snapshot.resources;
  const Amounts requests = table.read(role.pod.requests);
  const Amounts most = widest(World(snapshot, World::Pods::kEmptied), role);
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!is_device(table.name(i)) || requests[i] <= most[i] || most[i] <= 0) continue;
    if (emptied.placed_of(role) > 0) continue;
    Role narrow = role;
    narrow.pods = kube::saturating_multiply(role.pods, requests[i]) / most[i];
    narrow.pods += narrow.pods * most[i] < kube::saturating_multiply(role.pods, requests[i]);
    narrow.pod.requests[table.name(i)] = kube::Quantity::of(most[i]);
    const std::string each = fmt::format("with {} {} each", table.print(i, most[i]), table.name(i));
    const Placement now = try_to_place(snapshot, World::Pods::kRunning, {&narrow});
    if (now.find_incomplete() == nullptr)
      return fmt::format("{} {} fit now", count_of_pods(narrow.pods), each);
    const std::int64_t later =
        try_to_place(snapshot, World::Pods::kEmptied, {&narrow}).placed_of(narrow);
    if (later == 0) continue;
    return fmt::format("{}{} {} fit once others have ended", later < narrow.pods ? "at most " : "",
                       count_of_pods(later), each);
  }
  return {};
}

// Returns whether the pods of the role find no places, whatever else there is.
bool is_alone_impossible(const Snapshot& snapshot, const Role& role) {
  constexpr std::size_t kMaxDomains = 64;  // more of them would take long
  Role alone = role;
  if (!alone.pod.affinity.empty() || alone.pod.spread.size() > 1) alone.pod.spread.clear();
  const auto is_placed = [&snapshot](const Role& each) {
    return try_to_place(snapshot, World::Pods::kEmptied, {&each}).find_incomplete() == nullptr;
  };
  if (alone.pod.affinity.size() > 1) alone.pod.affinity.clear();
  if (alone.pod.affinity.empty()) return !is_placed(alone);
  // The first pod chooses the domain in which all the others are.
  const std::string& key = alone.pod.affinity.front().topology_key;
  std::set<std::string> domains;
  for (const Node& node : snapshot.nodes)
    if (const auto at = node.labels.find(key); at != node.labels.end()) domains.insert(at->second);
  if (domains.size() > kMaxDomains) return false;
  return std::ranges::none_of(domains, [&](const std::string& domain) {
    Role inside = alone;
    inside.pod.node_selector[key] = domain;
    return is_placed(inside);
  });
}

// Nodes were chosen one after the other, so another choice may do where this one has failed. It is
// certain that none does if one role finds no places by itself, or if the sum is too large.
bool is_impossible(const Snapshot& snapshot, const std::vector<const Role*>& roles) {
  const World world(snapshot, World::Pods::kEmptied);
  for (std::size_t i = 0; i < snapshot.resources.size(); ++i) {
    std::int64_t asked = 0;
    std::int64_t free = 0;
    for (const Role* role : roles)
      asked = kube::saturating_add(
          asked,
          kube::saturating_multiply(role->pods, snapshot.resources.read(role->pod.requests)[i]));
    for (const World::State& state : world.nodes())
      if (std::ranges::any_of(roles, [&state](const Role* role) {
            return !RoleRules::find_obstacle_of_node(role->pod, *state.node);
          }))
        free = kube::saturating_add(free, world.free(state, i));
    if (asked > free) return true;
  }
  return std::ranges::any_of(
      roles, [&snapshot](const Role* role) { return is_alone_impossible(snapshot, *role); });
}

StageAnswer plan_nodes(const Snapshot& snapshot, const std::vector<const Role*>& roles) {
  StageAnswer answer;
  if (!snapshot.nodes_unread.empty()) {
    answer.verdict = Verdict::kUnknown;
    return answer;
  }
  const Placement now = try_to_place(snapshot, World::Pods::kRunning, roles);
  const Role* lacking = now.find_incomplete();
  if (lacking == nullptr) {
    answer.nodes = shares_of(now);
    answer.is_tight = now.packing == Packing::kMostAllocated;
    if (!snapshot.pods_unread.empty()) answer.verdict = Verdict::kUnknown;
    return answer;
  }
  const Placement emptied = try_to_place(snapshot, World::Pods::kEmptied, roles);
  if (const Role* never = emptied.find_incomplete()) {
    answer.verdict = is_impossible(snapshot, roles) ? Verdict::kNever : Verdict::kUnknown;
    Reason reason = explain(emptied, *never, World::Pods::kEmptied);
    if (std::string narrower = find_narrower(snapshot, emptied, *never); !narrower.empty())
      reason.change = std::move(narrower);
    answer.reasons.push_back(std::move(reason));
    return answer;
  }
  answer.verdict = Verdict::kWaits;
  answer.reasons.push_back(explain(now, *lacking, World::Pods::kRunning));
  return answer;
}

void add_quotas(const Asked& asked, std::int64_t stage, const Snapshot& snapshot,
                StageAnswer& answer) {
  for (const Quota& quota : snapshot.quotas) {
    for (QuotaReason& each : resource_quota(asked, stage, quota)) {
      const bool is_worse = each.verdict > answer.verdict;
      answer.verdict = std::max(answer.verdict, each.verdict);
      answer.reasons.insert(is_worse ? answer.reasons.begin() : answer.reasons.end(),
                            std::move(each.reason));
    }
  }
}

// The queue comes before the nodes.
void add_reasons(Verdict verdict, std::vector<Reason> reasons, PlanAnswer& answer) {
  if (reasons.empty()) return;
  const bool is_worse = verdict >= answer.verdict;
  answer.reasons.insert(is_worse ? answer.reasons.begin() : answer.reasons.end(),
                        std::make_move_iterator(reasons.begin()),
                        std::make_move_iterator(reasons.end()));
  answer.verdict = std::max(answer.verdict, verdict);
  answer.nodes.clear();
}

void add_queue(QueueAnswer its, PlanAnswer& answer) {
  answer.queue_plan = std::move(its.plan);
  std::ranges::move(its.undecided, std::back_inserter(answer.undecided));
  add_reasons(its.verdict, std::move(its.reasons), answer);
}

void add_unread(const UnreadQueue& queue, PlanAnswer& answer) {
  Reason reason;
  reason.rule = queue.kind;
  reason.message = queue.message;
  add_reasons(queue.is_missing ? Verdict::kWaits : Verdict::kUnknown, {std::move(reason)}, answer);
}

void add_asked(const Asked& asked, const ResourceTable& table, PlanAnswer& answer) {
  Amounts sums(table.size(), 0);
  for (const Role& role : asked.roles) {
    RoleRequest request{role.name, role.pods, {}};
    const Amounts amounts = table.read(role.pod.requests);
    for (std::size_t i = 0; i < table.size(); ++i) {
      sums[i] = kube::saturating_add(sums[i], kube::saturating_multiply(amounts[i], role.pods));
      if (amounts[i] > 0) request.requests.emplace_back(table.name(i), table.print(i, amounts[i]));
    }
    answer.roles.push_back(std::move(request));
  }
  for (std::int64_t stage = 0; stage < asked.stages; ++stage)
    answer.pods = std::max(answer.pods, asked.pods_of_stage(stage));
  for (std::size_t i = 0; i < table.size(); ++i)
    if (is_device(table.name(i)) && sums[i] > 0)
      answer.devices.emplace_back(table.name(i), sums[i]);
  answer.gang_minimum = asked.gang_minimum;
  answer.queue = asked.queue;
}

void add_undecided(const Asked& asked, const Snapshot& snapshot, PlanAnswer& answer) {
  if (!snapshot.nodes_unread.empty())
    answer.undecided.push_back(
        fmt::format("nodes: {}, so only quotas were compared", snapshot.nodes_unread));
  if (!snapshot.pods_unread.empty())
    answer.undecided.push_back(fmt::format(
        "pods: {}, so nodes were compared as if nothing ran on them", snapshot.pods_unread));
  if (!snapshot.quotas_unread.empty())
    answer.undecided.push_back(
        fmt::format("resourcequotas: {}, so no quota was compared", snapshot.quotas_unread));
  std::set<std::string> said;
  for (const Role& role : asked.roles)
    for (const std::string& text : role.pod.undecided)
      if (role.pods > 0 && said.insert(text).second)
        answer.undecided.push_back(fmt::format("{}: {}", role.name, text));
}

void plan_stages(const Asked& asked, const Snapshot& snapshot, PlanAnswer& answer) {
  std::int64_t most = -1;
  bool is_tight = false;
  for (std::int64_t stage = 0; stage < asked.stages; ++stage) {
    StageAnswer its = plan_nodes(snapshot, roles_of(asked, stage));
    add_quotas(asked, stage, snapshot, its);
    if (its.verdict > answer.verdict) {
      answer.verdict = its.verdict;
      answer.reasons = std::move(its.reasons);
      answer.nodes.clear();
    }
    const std::int64_t pods = asked.pods_of_stage(stage);
    if (answer.verdict != Verdict::kFits || pods <= most) continue;
    most = pods;
    answer.nodes = std::move(its.nodes);
    is_tight |= its.is_tight;
  }
  if (is_tight && answer.verdict == Verdict::kFits)
    answer.undecided.push_back(
        "the pods fit if they are packed, the largest first; kube-scheduler may spread small ones "
        "so that a large one finds no node");
}

}  // namespace

std::string name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "now";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kWaits:
      return "waits";
    case Verdict::kNever:
      return "never";
  }
  return {};
}

PlanAnswer plan_fit(const Asked& given, const Snapshot& snapshot) {
  PlanAnswer answer;
  answer.waiting_pods = snapshot.waiting_pods;
  Asked asked = given;
  std::optional<QueueAnswer> queue;
  if (snapshot.kueue) {
    queue = kueue_quota(asked, *snapshot.kueue);
    asked.roles = std::move(queue->roles);
  }
  add_asked(asked, snapshot.resources, answer);
  add_undecided(asked, snapshot, answer);
  plan_stages(asked, snapshot, answer);
  if (queue) add_queue(std::move(*queue), answer);
  if (snapshot.queue_unread) add_unread(*snapshot.queue_unread, answer);
  return answer;
}

}  // namespace trainer::fit
