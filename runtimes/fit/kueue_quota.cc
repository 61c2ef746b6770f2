#include "runtimes/fit/kueue_quota.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/saturating.hh"

namespace trainer::fit {
namespace {

Amounts sum_of(const Asked& asked, const ResourceTable& table) {
  Amounts sums(table.size(), 0);
  for (const Role& role : asked.roles) {
    Amounts amounts = table.read(role.pod.requests);
    amounts[ResourceTable::kPods] = 1;
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = kube::saturating_add(sums[i], kube::saturating_multiply(amounts[i], role.pods));
  }
  return sums;
}

// One resource of one flavor.
Verdict compare(const ClusterQueue& queue, const ClusterQueue::Flavor& flavor, std::size_t index,
                std::int64_t asked) {
  const std::int64_t nominal = flavor.nominal[index];
  const std::int64_t after = kube::saturating_add(flavor.reserved[index], asked);
  if (after <= nominal) return Verdict::kFits;
  if (!queue.has_cohort) return asked <= nominal ? Verdict::kWaits : Verdict::kNever;
  const auto& borrowing = flavor.borrowing[index];
  const std::int64_t most = kube::saturating_add(nominal, borrowing.value_or(0));
  if (!borrowing || after <= most) return Verdict::kUnknown;
  return asked <= most ? Verdict::kWaits : Verdict::kNever;
}

QueueAnswer ask_flavor(const ClusterQueue& queue, const ClusterQueue::Group& group,
                       const ClusterQueue::Flavor& flavor, const Amounts& sums,
                       const ResourceTable& table) {
  QueueAnswer answer;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!group.covers[i] || sums[i] == 0) continue;
    const Verdict verdict = compare(queue, flavor, i, sums[i]);
    if (verdict <= answer.verdict) continue;
    answer.verdict = verdict;
    Reason reason;
    reason.rule = "ClusterQueue";
    reason.message = fmt::format(
        "the flavor {} of {} has a quota of {} {}, {} are reserved, and the job asks for {}",
        flavor.name, queue.name, table.print(i, flavor.nominal[i]), table.name(i),
        table.print(i, flavor.reserved[i]), table.print(i, sums[i]));
    if (verdict == Verdict::kUnknown)
      reason.change = "it may borrow the rest from its cohort, as far as others leave it";
    else if (verdict == Verdict::kWaits && queue.pending > 0)
      reason.change = fmt::format("{} workload{} in this queue", queue.pending,
                                  queue.pending == 1 ? " waits" : "s wait");
    answer.reason = std::move(reason);
  }
  return answer;
}

QueueAnswer refusal(const ClusterQueue& queue, Verdict verdict, std::string_view what) {
  Reason reason;
  reason.rule = "ClusterQueue";
  reason.message = fmt::format("{} {}", queue.name, what);
  return {verdict, std::move(reason)};
}

}  // namespace

QueueAnswer kueue_quota(const Asked& asked, const ResourceTable& resources,
                        const ClusterQueue& queue) {
  if (queue.is_stopped) return refusal(queue, Verdict::kWaits, "admits nothing (stopPolicy)");
  const Amounts sums = sum_of(asked, resources);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const bool is_covered = std::ranges::any_of(
        queue.groups, [i](const ClusterQueue::Group& group) { return group.covers[i]; });
    if (sums[i] > 0 && !is_covered && i != ResourceTable::kPods)
      return refusal(queue, Verdict::kNever,
                     fmt::format("has no quota of {}, and the job asks for {}", resources.name(i),
                                 resources.print(i, sums[i])));
  }
  QueueAnswer worst;
  for (const ClusterQueue::Group& group : queue.groups) {
    std::optional<QueueAnswer> best;
    for (const ClusterQueue::Flavor& flavor : group.flavors) {
      QueueAnswer its = ask_flavor(queue, group, flavor, sums, resources);
      if (!best || its.verdict < best->verdict) best = std::move(its);
    }
    // Kueue chooses a flavor for each role.
    if (best && asked.roles.size() > 1 && group.flavors.size() > 1)
      best->verdict = std::min(best->verdict, Verdict::kUnknown);
    if (best && best->verdict > worst.verdict) worst = std::move(*best);
  }
  return worst;
}

}  // namespace trainer::fit
