// PodGroups for gang schedulers (pkg/controller.v1/common/scheduling.go,
// control/podgroup_control.go).
#include <fmt/format.h>

#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

// Adds up the requests of the first `members` pods, in the order of the roles. The limits of a
// container count only if it has no requests; init containers do not count.
kube::ResourceList resources_of(const V1JobContext& context, std::int64_t members) {
  kube::ResourceList total;
  for (const RoleState& role : context.roles) {
    const std::int64_t pods =
        std::min<std::int64_t>(role.replicas, std::max<std::int64_t>(members, 0));
    members -= pods;
    if (pods == 0) continue;
    for (const Json& container : role.spec->template_.get("spec").get_array("containers")) {
      const bool has_requests = container.get("resources").get("requests").is_object();
      kube::ResourceList own =
          kube::read_resources(container, has_requests ? "requests" : "limits");
      for (auto& [name, amount] : own) {
        amount *= pods;
        total[name] += amount;
      }
    }
  }
  return total;
}

Json spec_of(const V1JobContext& context, const gang::GangScheduler& scheduler) {
  const auto& stated = context.job.spec.runPolicy.schedulingPolicy;
  const SchedulingPolicy policy = stated.value_or(SchedulingPolicy{});
  gang::GroupRequest request;
  request.min_member = policy.minAvailable.value_or(total_replicas(context.job));
  request.min_resources = policy.minResources
                              ? kube::read_resource_list(policy.minResources->as_object())
                              : resources_of(context, request.min_member);
  if (request.min_resources->empty() && !scheduler.has_empty_members) request.min_resources.reset();
  request.queue = policy.queue.empty() ? "default" : policy.queue;
  request.priority_class = policy.priorityClass;
  request.timeout_seconds = policy.scheduleTimeoutSeconds;
  return scheduler.spec(request);
}

// An existing group keeps its queue.
void update_group(V1JobContext& context, const gang::GangScheduler& scheduler, const Json& stored) {
  Json spec = spec_of(context, scheduler);
  Json before = Json::object();
  for (const std::string_view member : scheduler.spec_members)
    if (const Json* value = stored.get("spec").find(member)) before.set(member, *value);
  if (!before.get_string("queue").empty()) spec.set("queue", before.get("queue"));
  if (!before.find("minResources") && spec.get("minResources").empty()) spec.erase("minResources");
  Json change = kube::merge_diff(before, spec);
  if (!change.is_null())
    context.patch(scheduler.pod_groups, context.name(), Json::object({{"spec", std::move(change)}}),
                  kBeforePods);
}

}  // namespace

const kube::Resource* pod_groups_of(const Settings& settings) {
  const auto* scheduler = gang::find_scheduler(settings.gang_scheduler);
  return scheduler ? &scheduler->pod_groups : nullptr;
}

bool sync_pod_group(V1JobContext& context) {
  const auto* scheduler = gang::find_scheduler(context.observed.settings.gang_scheduler);
  if (scheduler == nullptr) return true;
  const Json* stored = context.find_dependent(scheduler->pod_groups, context.name());
  if (stored == nullptr) {
    Json metadata = Json::object();
    if (!context.job.metadata.annotations.empty())
      metadata.set("annotations", kube::to_json(context.job.metadata.annotations));
    Json group =
        Json::object({{"metadata", std::move(metadata)}, {"spec", spec_of(context, *scheduler)}});
    if (scheduler->has_empty_members) group.set("status", Json::object());
    context.create(scheduler->pod_groups, context.name(), std::move(group), kBeforePods,
                   "FailedCreatePodGroup");
  } else if (const kube::ObjectMeta meta = kube::ObjectMeta::of(*stored);
             meta.controller() && !context.is_owner_of(*stored)) {
    return context.block(
        fmt::format("PodGroup {} belongs to {} {}; delete that, or give this job another name",
                    context.name(), meta.controller()->kind, meta.controller()->name));
  } else {
    update_group(context, *scheduler, *stored);
  }
  if (!scheduler->is_admitted || !context.observed.pods.empty() ||
      scheduler->is_admitted(stored ? *stored : Json()))
    return true;
  if (!context.status.lastReconcileTime)
    context.status.lastReconcileTime = context.observed.now.whole_seconds();
  return false;
}

void remove_pod_group(V1JobContext& context) {
  const kube::Resource* groups = pod_groups_of(context.observed.settings);
  if (groups == nullptr) return;
  const Json* stored = context.find_dependent(*groups, context.name());
  if (stored == nullptr || !context.is_owner_of(*stored) ||
      kube::ObjectMeta::of(*stored).deletion_timestamp)
    return;
  context.note("Normal", "JobTerminated", "Job has been terminated. Deleting PodGroup");
  context.remove(*groups, context.name(), kube::ObjectMeta::of(*stored).uid,
                 "FailedDeletePodGroup");
  context.note("Normal", "SuccessfulDeletePodGroup", "Deleted PodGroup: " + context.name());
}

void decorate_for_gang(const Settings& settings, std::string_view job_name, std::string_view type,
                       Json& pod_template) {
  const auto* scheduler = gang::find_scheduler(settings.gang_scheduler);
  if (scheduler == nullptr) return;
  Json& spec = pod_template["spec"];
  if (spec.get_string("schedulerName").empty())
    spec.set("schedulerName", gang::scheduler_name(settings.gang_scheduler));
  scheduler->mark(pod_template, job_name, type);
}

}  // namespace trainer::v1
