#include "runtimes/fit/cluster_queue.hh"

namespace trainer::fit {
namespace {

using kube::Json;

void set_amount(const ResourceTable& table, const Json& item, std::string_view member,
                Amounts& amounts) {
  const auto amount = kube::Quantity::read(item.get(member));
  if (!amount) return;
  const Amounts read = table.read({{std::string(item.get_string("name")), *amount}});
  for (std::size_t i = 0; i < read.size(); ++i)
    if (table.name(i) == item.get_string("name")) amounts[i] = read[i];
}

ClusterQueue::Flavor read_flavor(const Json& given, const Json& status,
                                 const ResourceTable& table) {
  ClusterQueue::Flavor flavor;
  flavor.name = given.get_string("name");
  flavor.nominal = flavor.reserved = Amounts(table.size(), 0);
  flavor.borrowing.assign(table.size(), std::nullopt);
  for (const Json& resource : given.get_array("resources")) {
    set_amount(table, resource, "nominalQuota", flavor.nominal);
    if (resource.get("borrowingLimit").is_null()) continue;
    Amounts limits(table.size(), 0);
    set_amount(table, resource, "borrowingLimit", limits);
    for (std::size_t i = 0; i < table.size(); ++i)
      if (table.name(i) == resource.get_string("name")) flavor.borrowing[i] = limits[i];
  }
  for (const Json& used : status.get_array("flavorsReservation"))
    if (used.get_string("name") == flavor.name)
      for (const Json& resource : used.get_array("resources"))
        set_amount(table, resource, "total", flavor.reserved);
  return flavor;
}

}  // namespace

ClusterQueue ClusterQueue::read(const Json& object, const ResourceTable& resources) {
  const Json& spec = object.get("spec");
  const Json& status = object.get("status");
  ClusterQueue queue;
  queue.name = object.get("metadata").get_string("name");
  queue.has_cohort = !spec.get_string("cohort").empty() || !spec.get_string("cohortName").empty();
  const std::string_view policy = spec.get_string("stopPolicy", "None");
  queue.is_stopped = policy != "None";
  queue.pending = status.get_int("pendingWorkloads");
  for (const Json& given : spec.get_array("resourceGroups")) {
    Group group;
    group.covers.assign(resources.size(), false);
    for (const Json& name : given.get_array("coveredResources"))
      for (std::size_t i = 0; i < resources.size(); ++i)
        if (name.is_string() && name.as_string() == resources.name(i)) group.covers[i] = true;
    for (const Json& flavor : given.get_array("flavors"))
      group.flavors.push_back(read_flavor(flavor, status, resources));
    queue.groups.push_back(std::move(group));
  }
  return queue;
}

}  // namespace trainer::fit
