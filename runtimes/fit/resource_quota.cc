#include "runtimes/fit/resource_quota.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace trainer::fit {
namespace {

using kube::Quantity;
using kube::ResourceList;

bool is_best_effort(const PodRequest& pod) {
  const auto has = [](const ResourceList& list) {
    return list.contains("cpu") || list.contains("memory");
  };
  return !has(pod.requests) && !has(pod.limits);
}

bool matches(const Quota::Scope& scope, const PodRequest& pod) {
  if (scope.name == "Terminating") return pod.has_deadline;
  if (scope.name == "NotTerminating") return !pod.has_deadline;
  if (scope.name == "BestEffort") return is_best_effort(pod);
  if (scope.name == "NotBestEffort") return !is_best_effort(pod);
  if (scope.name != "PriorityClass") return false;
  const bool is_listed = std::ranges::find(scope.values, pod.priority_class) != scope.values.end();
  if (scope.op == "Exists") return !pod.priority_class.empty();
  if (scope.op == "DoesNotExist") return pod.priority_class.empty();
  return scope.op == "NotIn" ? !is_listed : is_listed;
}

// A quota counts one pod under these names.
ResourceList counted(const PodRequest& pod) {
  ResourceList all{{"pods", Quantity::of(1)}, {"count/pods", Quantity::of(1)}};
  for (const auto& [name, amount] : pod.requests) {
    all["requests." + name] = amount;
    if (name.find('/') == name.npos) all[name] = amount;
  }
  for (const auto& [name, amount] : pod.limits) all["limits." + name] = amount;
  return all;
}

}  // namespace

std::vector<QuotaReason> resource_quota(const Asked& asked, std::int64_t stage,
                                        const Quota& quota) {
  ResourceList sum;
  if (quota.scopes.empty() && stage == 0) sum["count/jobs.batch"] = Quantity::of(asked.jobs);
  for (const Role& role : asked.roles) {
    const bool is_counted = role.first_stage <= stage && stage <= role.last_stage &&
                            std::ranges::all_of(quota.scopes, [&role](const Quota::Scope& scope) {
                              return matches(scope, role.pod);
                            });
    if (!is_counted) continue;
    for (auto& [name, amount] : counted(role.pod)) {
      Quantity all = amount;
      sum[name] += (all *= role.pods - role.made);
    }
  }
  std::vector<QuotaReason> reasons;
  for (const auto& [name, hard] : quota.hard) {
    const auto wanted = sum.find(name);
    if (wanted == sum.end() || wanted->second.is_zero()) continue;
    const auto at = quota.used.find(name);
    const Quantity used = at == quota.used.end() ? Quantity() : at->second;
    Quantity after = used;
    after += wanted->second;
    if (!(hard < after)) continue;
    const bool is_never = hard < wanted->second;
    reasons.push_back(
        {is_never ? Verdict::kNever : Verdict::kWaits,
         {"ResourceQuota",
          "",
          fmt::format("the quota {} allows {} {}, {} are used, and the job asks for {}", quota.name,
                      hard.to_string(), name, used.to_string(), wanted->second.to_string()),
          is_never
              ? fmt::format("a quota of {} {} would allow it", wanted->second.to_string(), name)
              : std::string(),
          {},
          0}});
  }
  return reasons;
}

}  // namespace trainer::fit
