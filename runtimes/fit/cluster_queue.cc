#include "runtimes/fit/cluster_queue.hh"

#include <fmt/format.h>

namespace trainer::fit {
namespace {

using kube::Json;

std::optional<std::size_t> find_resource(const ResourceTable& table, std::string_view name) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table.name(i) == name) return i;
  return std::nullopt;
}

std::optional<std::int64_t> read_amount(const ResourceTable& table, std::size_t resource,
                                        const Json& amount) {
  const auto read = kube::Quantity::read(amount);
  if (!read) return std::nullopt;
  return table.read({{table.name(resource), *read}})[resource];
}

FlavorQuotas read_quotas(const Json& spec, const ResourceTable& table) {
  FlavorQuotas quotas;
  for (const Json& group : spec.get_array("resourceGroups"))
    for (const Json& flavor : group.get_array("flavors"))
      for (const Json& given : flavor.get_array("resources")) {
        const auto resource = find_resource(table, given.get_string("name"));
        if (!resource) continue;
        FlavorQuota& quota = quotas[{std::string(flavor.get_string("name")), *resource}];
        quota.nominal = read_amount(table, *resource, given.get("nominalQuota")).value_or(0);
        quota.borrowing = read_amount(table, *resource, given.get("borrowingLimit"));
        quota.lending = read_amount(table, *resource, given.get("lendingLimit"));
      }
  return quotas;
}

FlavorUsage read_reserved(const Json& status, const ResourceTable& table) {
  FlavorUsage reserved;
  for (const Json& flavor : status.get_array("flavorsReservation"))
    for (const Json& used : flavor.get_array("resources"))
      if (const auto resource = find_resource(table, used.get_string("name")))
        reserved[{std::string(flavor.get_string("name")), *resource}] =
            read_amount(table, *resource, used.get("total")).value_or(0);
  return reserved;
}

std::vector<ClusterQueue::Group> read_groups(const Json& spec, const ResourceTable& table) {
  std::vector<ClusterQueue::Group> groups;
  for (const Json& given : spec.get_array("resourceGroups")) {
    ClusterQueue::Group group;
    group.covers.assign(table.size(), false);
    for (const Json& name : given.get_array("coveredResources"))
      if (const auto resource =
              find_resource(table, name.is_string() ? name.as_string() : std::string_view()))
        group.covers[*resource] = true;
    for (const Json& flavor : given.get_array("flavors"))
      group.flavors.emplace_back(flavor.get_string("name"));
    groups.push_back(std::move(group));
  }
  return groups;
}

ClusterQueue::Preemption read_preemption(const Json& given) {
  ClusterQueue::Preemption read;
  read.within_queue = given.get_string("withinClusterQueue", "Never");
  read.reclaim = given.get_string("reclaimWithinCohort", "Never");
  const Json& borrowing = given.get("borrowWithinCohort");
  read.may_borrow = borrowing.get_string("policy", "Never") != "Never";
  if (borrowing.find("maxPriorityThreshold") != nullptr)
    read.borrow_threshold = borrowing.get_int("maxPriorityThreshold");
  return read;
}

// A ClusterQueue that its controller calls inactive lacks an object, or was stopped.
std::string find_inactive(const Json& object) {
  if (const std::string_view policy = object.get("spec").get_string("stopPolicy", "None");
      policy != "None")
    return fmt::format("admits nothing while spec.stopPolicy is {}; None would let jobs through",
                       policy);
  for (const Json& condition : object.get("status").get_array("conditions"))
    if (condition.get_string("type") == "Active" && condition.get_string("status") == "False")
      return fmt::format("is not active: {}", condition.get_string("message"));
  return {};
}

}  // namespace

ClusterQueue ClusterQueue::read(const Json& object, const ResourceTable& resources) {
  const Json& spec = object.get("spec");
  ClusterQueue queue;
  queue.name = object.get("metadata").get_string("name");
  queue.cohort = spec.get_string("cohortName", spec.get_string("cohort"));  // before v1beta2
  queue.inactive = find_inactive(object);
  queue.is_strict = spec.get_string("queueingStrategy") == "StrictFIFO";
  queue.pending = object.get("status").get_int("pendingWorkloads");
  queue.namespaces = LabelSelector::read(spec.get("namespaceSelector"));
  for (const Json& check : spec.get("admissionChecksStrategy").get_array("admissionChecks"))
    queue.checks.emplace_back(check.get_string("name"));
  for (const Json& check : spec.get_array("admissionChecks"))
    if (check.is_string()) queue.checks.push_back(check.as_string());
  const Json& fungibility = spec.get("flavorFungibility");
  queue.fungibility.tries_next_to_borrow =
      fungibility.get_string("whenCanBorrow") == "TryNextFlavor";
  queue.fungibility.tries_next_to_preempt =
      fungibility.get_string("whenCanPreempt", "TryNextFlavor") == "TryNextFlavor";
  queue.fungibility.prefers_preemption =
      fungibility.get_string("preference") == "PreemptionOverBorrowing";
  queue.preemption = read_preemption(spec.get("preemption"));
  queue.groups = read_groups(spec, resources);
  queue.quotas = read_quotas(spec, resources);
  queue.reserved = read_reserved(object.get("status"), resources);
  return queue;
}

const ClusterQueue::Group* ClusterQueue::find_group(std::size_t resource) const {
  for (const Group& group : groups)
    if (group.covers[resource]) return &group;
  return nullptr;
}

Cohort Cohort::read(const Json& object, const ResourceTable& resources) {
  const Json& spec = object.get("spec");
  return {std::string(object.get("metadata").get_string("name")),
          std::string(spec.get_string("parentName")), read_quotas(spec, resources)};
}

ResourceFlavor ResourceFlavor::read(const Json& object) {
  const Json& spec = object.get("spec");
  ResourceFlavor flavor;
  flavor.name = object.get("metadata").get_string("name");
  flavor.labels = kube::read_string_map(spec.find("nodeLabels"));
  for (const Json& taint : spec.get_array("nodeTaints"))
    flavor.taints.push_back(Taint::read(taint));
  for (const Json& toleration : spec.get_array("tolerations"))
    flavor.tolerations.push_back(Toleration::read(toleration));
  flavor.topology = spec.get_string("topologyName");
  return flavor;
}

std::vector<std::string> covered_resources(const Json& object) {
  std::vector<std::string> names;
  for (const Json& group : object.get("spec").get_array("resourceGroups"))
    for (const Json& name : group.get_array("coveredResources"))
      if (name.is_string()) names.push_back(name.as_string());
  return names;
}

}  // namespace trainer::fit
