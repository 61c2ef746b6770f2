#include "runtimes/gang/gang_scheduler.hh"

#include <utility>

#include "runtimes/views/text.hh"

namespace trainer::gang {

kube::Json size_members(const GroupRequest& request) {
  kube::Json spec = kube::Json::object();
  if (request.min_member != 0) spec.set("minMember", request.min_member);
  if (!request.min_resources) return spec;
  kube::Json amounts = kube::Json::object();
  for (const auto& [name, amount] : *request.min_resources) amounts.set(name, amount.to_string());
  return spec.set("minResources", std::move(amounts));
}

void GangScheduler::mark(kube::Json& pod_template, std::string_view group,
                         std::string_view role) const {
  pod_template[mark_part][mark_map].set(mark_key, group);
  if (!role.empty() && !role_annotation.empty())
    pod_template["metadata"]["annotations"].set(role_annotation, role);
}

const GangScheduler* find_scheduler(std::string_view flag) {
  if (flag.empty()) return nullptr;
  return to_lower(flag) == volcano().scheduler_name ? &volcano() : &coscheduling();
}

std::string_view scheduler_name(std::string_view flag) {
  const GangScheduler* scheduler = find_scheduler(flag);
  return scheduler && !scheduler->scheduler_name.empty() ? scheduler->scheduler_name : flag;
}

}  // namespace trainer::gang
