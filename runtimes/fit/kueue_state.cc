#include "runtimes/fit/kueue_state.hh"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "kube/model/saturating.hh"

namespace trainer::fit {
namespace {

using kube::Json;

kube::Time reserved_at(const Json& status) {
  for (const Json& each : status.get_array("conditions"))
    if (each.get_string("type") == "QuotaReserved")
      return kube::Time::parse(each.get_string("lastTransitionTime")).value_or(kube::Time());
  return kube::Time();
}

// Pods that have ended give their part of the quota back.
std::int64_t reclaimable(const Json& status, std::string_view pod_set) {
  for (const Json& each : status.get_array("reclaimablePods"))
    if (each.get_string("name") == pod_set) return each.get_int("count");
  return 0;
}

FlavorUsage read_usage(const Json& status, const ResourceTable& table) {
  FlavorUsage usage;
  for (const Json& each : status.get("admission").get_array("podSetAssignments")) {
    const Amounts amounts = table.read(kube::read_resource_list(each.get_object("resourceUsage")));
    const std::int64_t count = std::max<std::int64_t>(1, each.get_int("count", 1));
    const std::int64_t left =
        std::max<std::int64_t>(0, count - reclaimable(status, each.get_string("name")));
    for (std::size_t i = 0; i < table.size(); ++i)
      if (const std::string_view flavor = each.get("flavors").get_string(table.name(i));
          !flavor.empty() && amounts[i] > 0) {
        std::int64_t& used = usage[{std::string(flavor), i}];
        used = kube::saturating_add(used, amounts[i] / count * left);
      }
  }
  return usage;
}

std::vector<Role> read_roles(const Json& spec, const std::string& ns) {
  std::vector<Role> roles;
  for (const Json& each : spec.get_array("podSets")) {
    Role role;
    role.name = each.get_string("name");
    role.pods = each.get_int("count");
    role.pod = PodRequest::read(each.get("template"), ns);
    roles.push_back(std::move(role));
  }
  return roles;
}

// The nodes of the tree come from Cohorts and from the names that ClusterQueues have of theirs.
class TreeMaker {
 public:
  explicit TreeMaker(const KueueState& state) : state_(state) {}

  // Returns the nodes of the tree that has the ClusterQueue; nullopt if there is a circle.
  std::optional<std::vector<QuotaTree::Node>> run(const ClusterQueue& own) {
    for (const Cohort& each : state_.cohorts) parents_[each.name] = each.parent;
    if (own.cohort.empty()) {
      add_queue(own, QuotaTree::kNone);
      return std::move(nodes_);
    }
    const auto root = find_root(own.cohort);
    if (!root) return std::nullopt;
    for (const auto& [name, each] : state_.queues)
      if (!each.cohort.empty() && find_root(each.cohort) == root)
        add_queue(each, add_cohort(each.cohort));
    for (const Cohort& each : state_.cohorts)
      if (find_root(each.name) == root) add_cohort(each.name);
    return std::move(nodes_);
  }

 private:
  std::optional<std::string> find_root(std::string name) const {
    for (std::size_t steps = 0; steps <= parents_.size(); ++steps) {
      const auto at = parents_.find(name);
      if (at == parents_.end() || at->second.empty()) return name;
      name = at->second;
    }
    return std::nullopt;
  }

  // A Cohort of which there is no object has no quota of its own.
  QuotaTree::Index add_cohort(const std::string& name) {
    if (const auto at = cohorts_.find(name); at != cohorts_.end()) return at->second;
    QuotaTree::Node node;
    node.name = name;
    for (const Cohort& each : state_.cohorts)
      if (each.name == name) node.quotas = each.quotas;
    const auto parent = parents_.find(name);
    if (parent != parents_.end() && !parent->second.empty())
      node.parent = add_cohort(parent->second);
    nodes_.push_back(std::move(node));
    return cohorts_[name] = nodes_.size() - 1;
  }

  void add_queue(const ClusterQueue& queue, QuotaTree::Index parent) {
    QuotaTree::Node node;
    node.name = queue.name;
    node.is_queue = true;
    node.is_active = queue.inactive.empty();
    node.parent = parent;
    node.quotas = queue.quotas;
    node.usage = queue.reserved;
    nodes_.push_back(std::move(node));
  }

  const KueueState& state_;
  std::map<std::string, std::string, std::less<>> parents_;  // by Cohort
  std::map<std::string, QuotaTree::Index, std::less<>> cohorts_;
  std::vector<QuotaTree::Node> nodes_;
};

std::optional<QuotaTree> make_tree(const KueueState& state, std::int64_t outside, bool is_empty) {
  const ClusterQueue* own = state.find_queue(state.queue);
  if (own == nullptr) return std::nullopt;
  auto nodes = TreeMaker(state).run(*own);
  if (!nodes) return std::nullopt;
  if (is_empty)
    for (QuotaTree::Node& node : *nodes) node.usage.clear();
  const bool is_unread = !own->cohort.empty() && !state.cohort_unread.empty();
  return QuotaTree(std::move(*nodes), is_unread ? std::optional(outside) : std::nullopt);
}

}  // namespace

std::optional<QueuedWorkload> QueuedWorkload::read(const Json& object,
                                                   const ResourceTable& resources) {
  const Json& spec = object.get("spec");
  const Json& status = object.get("status");
  if (kube::has_condition(object, "Finished")) return std::nullopt;
  const auto meta = kube::ObjectMeta::of(object);
  QueuedWorkload read;
  read.ns = meta.ns;
  read.name = meta.name;
  if (const kube::OwnerReference* owner = meta.controller()) {
    read.owner_kind = owner->kind;
    read.owner_name = owner->name;
  }
  read.queue = spec.get_string("queueName");
  read.priority = spec.get_int("priority");
  for (const Json& each : spec.get_array("podSets"))
    read.pods = kube::saturating_add(read.pods, each.get_int("count"));
  read.created = meta.creation_timestamp.value_or(kube::Time());
  read.is_evicted = kube::has_condition(object, "Evicted");
  if (kube::has_condition(object, "QuotaReserved")) {
    read.cluster_queue = status.get("admission").get_string("clusterQueue");
    read.reserved_since = reserved_at(status);
    read.usage = read_usage(status, resources);
    return read;
  }
  if (!spec.get_bool("active", true)) return std::nullopt;
  read.roles = read_roles(spec, meta.ns);
  return read;
}

void KueueState::add(ClusterQueue added) {
  std::string name = added.name;
  queues.insert_or_assign(std::move(name), std::move(added));
}

void KueueState::add(QueuedWorkload workload) {
  const ClusterQueue* its = find_queue(workload.cluster_queue);
  if (its == nullptr) return;
  const bool is_elsewhere = its->name != queue;
  if (!workload.is_waiting() || !is_elsewhere) {
    workload.roles.clear();
    workloads[its->name].push_back(std::move(workload));
    return;
  }
  if (!its->is_strict) return;
  std::vector<QueuedWorkload>& others = workloads[its->name];
  const auto first = std::ranges::find_if(others, &QueuedWorkload::is_waiting);
  if (first == others.end())
    others.push_back(std::move(workload));
  else if (std::tuple(first->priority, workload.created) <
           std::tuple(workload.priority, first->created))
    *first = std::move(workload);
}

std::span<const QueuedWorkload> KueueState::workloads_of(std::string_view name) const {
  const auto at = workloads.find(name);
  return at == workloads.end() ? std::span<const QueuedWorkload>() : at->second;
}

const ClusterQueue* KueueState::find_queue(std::string_view name) const {
  const auto at = queues.find(name);
  return at == queues.end() ? nullptr : &at->second;
}

const ResourceFlavor* KueueState::find_flavor(std::string_view name) const {
  const auto at = std::ranges::find(flavors, name, &ResourceFlavor::name);
  return at == flavors.end() ? nullptr : &*at;
}

bool KueueState::is_own(const QueuedWorkload& workload, const std::string& ns) const {
  return !job_name.empty() && workload.ns == ns && workload.owner_name == job_name &&
         workload.owner_kind == job_kind;
}

std::optional<QuotaTree> KueueState::tree(bool is_optimistic) const {
  return make_tree(*this, is_optimistic ? QuotaTree::kUnlimited : 0, false);
}

std::optional<QuotaTree> KueueState::empty_tree() const {
  return make_tree(*this, QuotaTree::kUnlimited, true);
}

Amounts sum_of(const Role& role, const ResourceTable& resources) {
  Amounts amounts = resources.read(role.pod.requests);
  amounts[ResourceTable::kPods] = 1;
  for (std::int64_t& amount : amounts) amount = kube::saturating_multiply(amount, role.pods);
  return amounts;
}

}  // namespace trainer::fit
