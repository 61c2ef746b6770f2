// PodGroups for gang schedulers (pkg/controller.v1/common/scheduling.go,
// control/podgroup_control.go).
#include <fmt/format.h>

#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/gang/pod_group.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

bool is_volcano(const Settings& settings) {
  return to_lower(settings.gang_scheduler) == "volcano";
}

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

Json spec_of(const V1JobContext& context) {
  const auto& stated = context.job.spec.runPolicy.schedulingPolicy;
  const SchedulingPolicy policy = stated.value_or(SchedulingPolicy{});
  const std::int64_t members = policy.minAvailable.value_or(total_replicas(context.job));
  Json spec = Json::object();
  if (members != 0) spec.set("minMember", members);  // upstream's client leaves a 0 out
  const kube::ResourceList resources =
      policy.minResources ? kube::read_resource_list(policy.minResources->as_object())
                          : resources_of(context, members);
  // In the types of Volcano this is a pointer, so that upstream's client writes it empty, too.
  if (!resources.empty() || is_volcano(context.observed.settings))
    spec.set("minResources", gang::write_resources(resources));
  if (is_volcano(context.observed.settings)) {
    spec.set("queue", policy.queue.empty() ? "default" : policy.queue);
    if (!policy.priorityClass.empty()) spec.set("priorityClassName", policy.priorityClass);
  } else if (policy.scheduleTimeoutSeconds) {
    spec.set("scheduleTimeoutSeconds", std::int64_t{*policy.scheduleTimeoutSeconds});
  }
  return spec;
}

// These are the members that this controller writes. An existing group keeps its queue.
void update_group(V1JobContext& context, const kube::Resource& groups, const Json& stored,
                  Json spec) {
  Json before = Json::object();
  for (const char* member :
       {"minMember", "minResources", "queue", "priorityClassName", "scheduleTimeoutSeconds"})
    if (const Json* value = stored.get("spec").find(member)) before.set(member, *value);
  if (!before.get_string("queue").empty()) spec.set("queue", before.get("queue"));
  if (!before.find("minResources") && spec.get("minResources").empty()) spec.erase("minResources");
  Json change = kube::merge_diff(before, spec);
  if (!change.is_null())
    context.patch(groups, context.name(), Json::object({{"spec", std::move(change)}}), kBeforePods);
}

}  // namespace

const kube::Resource* pod_groups_of(const Settings& settings) {
  if (settings.gang_scheduler.empty()) return nullptr;
  return is_volcano(settings) ? &gang::kVolcanoPodGroups : &gang::kCoschedulingPodGroups;
}

std::string_view gang_scheduler_name(const Settings& settings) {
  return is_volcano(settings) ? std::string_view("volcano") : settings.gang_scheduler;
}

bool sync_pod_group(V1JobContext& context) {
  const kube::Resource* groups = pod_groups_of(context.observed.settings);
  if (groups == nullptr) return true;
  const Json* stored = context.find_dependent(*groups, context.name());
  if (stored == nullptr) {
    Json metadata = Json::object();
    if (!context.job.metadata.annotations.empty())
      metadata.set("annotations", kube::to_json(context.job.metadata.annotations));
    Json group = Json::object({{"metadata", std::move(metadata)}, {"spec", spec_of(context)}});
    // Upstream's typed client writes it so.
    if (is_volcano(context.observed.settings)) group.set("status", Json::object());
    context.create(*groups, context.name(), std::move(group), kBeforePods, "FailedCreatePodGroup");
  } else if (const kube::ObjectMeta meta = kube::ObjectMeta::of(*stored);
             meta.controller() && !context.is_owner_of(*stored)) {
    return context.block(
        fmt::format("PodGroup {} belongs to {} {}; delete that, or give this job another name",
                    context.name(), meta.controller()->kind, meta.controller()->name));
  } else {
    update_group(context, *groups, *stored, spec_of(context));
  }
  if (!is_volcano(context.observed.settings) || !context.observed.pods.empty()) return true;
  const std::string_view phase =
      stored ? stored->get("status").get_string("phase") : std::string_view();
  if (!phase.empty() && phase != "Pending") return true;
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
  if (settings.gang_scheduler.empty()) return;
  Json& spec = pod_template["spec"];
  if (spec.get_string("schedulerName").empty())
    spec.set("schedulerName", gang_scheduler_name(settings));
  if (is_volcano(settings))
    kube::add_annotations(pod_template,
                          {{std::string(gang::kVolcanoAnnotation), std::string(job_name)},
                           {"volcano.sh/task-spec", std::string(type)}});
  else
    kube::add_labels(pod_template,
                     {{std::string(gang::kCoschedulingLabel), std::string(job_name)}});
}

}  // namespace trainer::v1
