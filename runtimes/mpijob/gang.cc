// PodGroups for gang schedulers (mpi-operator, pkg/controller/podgroup.go).
#include <algorithm>
#include <optional>
#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/mpijob/context.hh"
#include "runtimes/views/text.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;

constexpr std::string_view kQueueAnnotation = "scheduling.volcano.sh/queue-name";

// These pods of one role are counted.
struct Counted {
  const v1::ReplicaSpec* role = nullptr;
  std::int64_t pods = 0;
};

std::string_view priority_class(const v1::ReplicaSpec* role) {
  return role ? role->template_.get("spec").get_string("priorityClassName") : std::string_view();
}

// Returns the value of a PriorityClass: 0 for one that does not exist. nullopt says that it is not
// known yet; plan.needs_objects has it then.
std::optional<std::int64_t> priority_of(MPIJobContext& context, std::string_view name) {
  if (name.empty()) return 0;
  if (const auto* known = context.observed.objects.find(kube::kPriorityClasses, name))
    return known->object ? known->object->get_int("value") : 0;
  context.plan.needs_objects.push_back({kube::kPriorityClasses, {"", std::string(name)}});
  return std::nullopt;
}

// The role of lower priority waits for the other, so that it counts as what is left of the gang.
std::vector<Counted> counted_pods(MPIJobContext& context, std::int64_t members) {
  const v1::ReplicaSpec* const launcher = find_role(context.job, kLauncher);
  const v1::ReplicaSpec* const workers = find_role(context.job, kWorker);
  const std::int64_t count = worker_count(context.job);
  if (members >= count + 1) return {{launcher, 1}, {workers, count}};
  const std::int64_t rest = std::max<std::int64_t>(members - 1, 0);
  const auto of_launcher = priority_of(context, priority_class(launcher));
  const auto of_workers = priority_of(context, priority_class(workers));
  if (!of_launcher || !of_workers) return {};
  // One launcher is less than the rest, which mpi-operator counts all the same.
  if (*of_workers > *of_launcher) return {{launcher, rest}, {workers, count}};
  return {{launcher, 1}, {workers, rest}};
}

// A limit counts for a resource that has no request. Init containers do not count.
kube::ResourceList resources_of(const std::vector<Counted>& counted) {
  kube::ResourceList total;
  for (const auto& [role, pods] : counted) {
    if (!role || pods == 0) continue;
    for (const Json& container : role->template_.get("spec").get_array("containers")) {
      kube::ResourceList own = kube::read_resources(container, "requests");
      own.merge(kube::read_resources(container, "limits"));
      for (auto& [name, amount] : own) {
        amount *= pods;
        total[name] += amount;
      }
    }
  }
  return total;
}

std::optional<kube::ResourceList> least_resources(MPIJobContext& context,
                                                  const v1::SchedulingPolicy& policy,
                                                  std::int64_t members) {
  if (policy.minResources) return kube::read_resource_list(policy.minResources->as_object());
  if (members == 0) return std::nullopt;
  return resources_of(counted_pods(context, members));
}

// The annotation is Volcano's; the other scheduler has no queues. `runPolicy.queue` is an
// extension.
std::optional<std::string> queue_of(const v1::V1Job& job, const v1::SchedulingPolicy& policy) {
  if (!policy.queue.empty()) return policy.queue;
  if (!job.spec.runPolicy.queue.empty()) return job.spec.runPolicy.queue;
  const auto at = job.metadata.annotations.find(kQueueAnnotation);
  return at == job.metadata.annotations.end() || at->second.empty() ? std::nullopt
                                                                    : std::optional(at->second);
}

Json make_spec(MPIJobContext& context, const gang::GangScheduler& scheduler) {
  const v1::SchedulingPolicy policy =
      context.job.spec.runPolicy.schedulingPolicy.value_or(v1::SchedulingPolicy{});
  gang::GroupRequest request;
  request.min_member = policy.minAvailable.value_or(std::int64_t{worker_count(context.job)} + 1);
  request.min_resources = least_resources(context, policy, request.min_member);
  if (request.min_resources && request.min_resources->empty() && !scheduler.has_empty_members)
    request.min_resources.reset();
  request.queue = queue_of(context.job, policy);
  request.priority_class = policy.priorityClass;
  for (const std::string_view role : {kLauncher, kWorker})
    if (request.priority_class.empty())
      request.priority_class = priority_class(find_role(context.job, role));
  request.timeout_seconds = policy.scheduleTimeoutSeconds.value_or(0);
  return scheduler.spec(request);
}

// Only the members that this controller writes count: a scheduler adds others.
Json change_of(const gang::GangScheduler& scheduler, const Json& stored, const Json& desired) {
  Json before = Json::object();
  for (const std::string_view member : scheduler.spec_members)
    if (const Json* value = stored.find(member)) before.set(member, *value);
  // Volcano's webhook fills in this queue.
  if (!desired.find("queue") && before.get_string("queue") == "default") before.erase("queue");
  return kube::merge_diff(before, desired);
}

}  // namespace

const kube::Resource* pod_groups_of(const MPISettings& settings) {
  const gang::GangScheduler* const scheduler = gang::find_scheduler(settings.gang_scheduler);
  return scheduler ? &scheduler->pod_groups : nullptr;
}

void sync_pod_group(MPIJobContext& context) {
  const auto* const scheduler = gang::find_scheduler(context.observed.settings.gang_scheduler);
  if (!scheduler) return;
  Json spec = make_spec(context, *scheduler);
  if (!context.observed.pod_group) {
    Json group = Json::object({{"spec", std::move(spec)}});
    if (scheduler->has_empty_members) group.set("status", Json::object());
    return context.create(scheduler->pod_groups, context.name(), std::move(group), kPodGroup);
  }
  Json change = change_of(*scheduler, context.observed.pod_group->get("spec"), spec);
  if (!change.is_null())
    context.patch(scheduler->pod_groups, context.name(),
                  Json::object({{"spec", std::move(change)}}), kPodGroup);
}

void remove_pod_group(MPIJobContext& context) {
  const kube::Resource* const groups = pod_groups_of(context.observed.settings);
  if (!groups || !context.observed.pod_group) return;
  const auto meta = kube::ObjectMeta::of(*context.observed.pod_group);
  if (!meta.deletion_timestamp) context.remove(*groups, context.name(), meta.uid);
}

// mpi-operator overwrites the scheduler of the template.
void mark_for_gang(const MPISettings& settings, std::string_view job, Json& pod_template) {
  const gang::GangScheduler* const scheduler = gang::find_scheduler(settings.gang_scheduler);
  if (!scheduler) return;
  pod_template["spec"].set("schedulerName", gang::scheduler_name(settings.gang_scheduler));
  scheduler->mark(pod_template, job, {});
}

}  // namespace trainer::mpijob
