// Each index of each role has one bare pod, and each pod has one headless Service
// (pkg/controller.v1/common/pod.go and service.go). A further Service has the name of the job.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/names.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/lifecycle/pod_warnings.hh"
#include "runtimes/v1/policies.hh"
#include "runtimes/v1/validate.hh"
#include "runtimes/views/labels.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

kube::StringMap labels_of(const Framework& framework, const V1Job& job, const PodSlot& slot) {
  kube::StringMap labels = base_labels(framework, job.metadata.name);
  labels.emplace(kV1ReplicaTypeKey, to_lower(slot.role));
  if (slot.role != framework.lone_role)
    labels.emplace(kV1ReplicaIndexKey, std::to_string(slot.index));
  return labels;
}

// MPIJobs have messages of their own for created objects.
void note_created(V1JobContext& context, const RoleState& role, const std::string& name) {
  const std::string_view lone_role = context.framework.lone_role;
  if (role.name == lone_role)
    return context.note("Normal", context.reason_of(kRunning),
                        "launcher pod created success: " + name);
  context.note("Normal", "SuccessfulCreatePod",
               (lone_role.empty() ? "Created pod: " : "Created worker pod: ") + name);
}

// This is called once for all pods of a role that one reconcile creates.
void warn_about_variables(V1JobContext& context, const RoleState& role, const Json& pod) {
  std::vector<std::string> texts;
  warn_about_replaced_variables(role.spec->template_, pod, role_path(context.framework, role.name),
                                texts);
  if (texts.empty()) return;
  const std::string more =
      texts.size() > 1 ? fmt::format("; and likewise {} more containers", texts.size() - 1) : "";
  context.note("Warning", "SetPodTemplateEnvironment", texts.front() + more);
}

// Together with the Service of the job these make "p-worker-0.p" a name of the pod. Members of the
// template stay: with setHostnameAsFQDN, a subdomain could make the host name too long.
void name_host(const std::string& pod, const std::string& job, Json& spec) {
  for (const char* member : {"hostname", "subdomain", "setHostnameAsFQDN"})
    if (spec.find(member)) return;
  // Stored jobs may have longer names than admission allows, and roles of a TFJob any name.
  if (kube::check_dns1123_label(pod).empty()) spec.set("hostname", pod).set("subdomain", job);
}

// Returns false if the batch is full: the next reconcile goes on.
bool sync_role(V1JobContext& context, const RoleState& role,
               const std::vector<std::string_view>& services, bool has_job_service, Batch& batch) {
  std::int32_t left = role.succeeded_gone;
  bool is_first = true;
  std::int64_t generated = 0;
  for (std::size_t i = 0; i < role.names.size(); ++i) {
    if (role.pods[i] != nullptr || left-- > 0) continue;
    if (is_first)
      generated =
          generated_bytes(context.framework, context.job, *role.spec, context.observed.settings);
    if (batch.is_full() || batch.generated < generated) return false;
    Json pod = make_pod(context.framework, context.job, *role.spec,
                        {role.name, static_cast<std::int32_t>(i)}, context.observed.settings);
    if (has_job_service) name_host(role.names[i], context.name(), pod["spec"]);
    batch.take(pod);
    batch.generated -= generated;
    if (std::exchange(is_first, false)) warn_about_variables(context, role, pod);
    note_created(context, role, role.names[i]);
    context.create(kube::kPods, role.names[i], std::move(pod), kWithPods, "FailedCreatePod");
  }
  if (!context.framework.has_services) return true;
  for (std::size_t i = 0; i < role.names.size(); ++i) {
    if (std::binary_search(services.begin(), services.end(), role.names[i])) continue;
    if (batch.is_full()) return false;
    Json service = make_service(context.framework, context.job, *role.spec,
                                {role.name, static_cast<std::int32_t>(i)});
    batch.take(service);
    context.note("Normal", "SuccessfulCreateService", "Created service: " + role.names[i]);
    context.create(kube::kServices, role.names[i], std::move(service), kWithPods,
                   "FailedCreateService");
  }
  return true;
}

// Returns whether a template names another scheduler. Upstream reports that for MPIJobs unless one
// template names the gang's scheduler.
bool has_scheduler_of_its_own(const V1JobContext& context, std::string_view gang_scheduler) {
  const bool must_be_named = !context.framework.lone_role.empty();
  bool is_named = false;
  bool is_other_named = false;
  for (const RoleState& role : context.roles) {
    const auto name = role.spec->template_.get("spec").get_string("schedulerName");
    is_named |= name == gang_scheduler;
    is_other_named |= !name.empty() && name != gang_scheduler;
  }
  return must_be_named ? !is_named : is_other_named;
}

// This is called once for all pods of one reconcile.
void warn_about_templates(V1JobContext& context) {
  const bool creates = std::any_of(
      context.plan.actions.begin(), context.plan.actions.end(), [](const kube::Action& action) {
        return action.verb == kube::Action::Verb::kCreate && action.resource == kube::kPods;
      });
  if (!creates) return;
  // Only an MPIJob has one: the launcher.
  const std::string_view lone_role = context.framework.lone_role;
  for (const RoleState& role : context.roles)
    if ((lone_role.empty() || role.name == lone_role) &&
        !role.spec->template_.get("spec").get_string("restartPolicy").empty()) {
      context.note("Warning", context.framework.template_restart_reason,
                   "Restart policy in pod template will be overwritten by restart policy in "
                   "replica spec");
      break;
    }
  const std::string_view scheduler = gang::scheduler_name(context.observed.settings.gang_scheduler);
  if (!scheduler.empty() && has_scheduler_of_its_own(context, scheduler))
    context.note("Warning", context.framework.template_scheduler_reason,
                 "Another scheduler is specified when gang-scheduling is enabled and it will not "
                 "be overwritten");
}

// "p-worker-0" may also be a pod of a job "p", which needs a Service of that name.
bool could_name_pod(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  if (dash == name.npos || name.find_first_not_of("0123456789", dash + 1) != name.npos)
    return false;
  const std::string_view before = name.substr(0, dash);
  return std::ranges::any_of(frameworks(), [before](const Framework* each) {
    return std::ranges::any_of(each->roles, [before](std::string_view role) {
      return before.ends_with("-" + to_lower(role));
    });
  });
}

// The Service of the job has all its pods. Upstream has none, and no event is made for it. Returns
// whether it is there, or created before the pods: in a pod that names a Service which is not there
// even the pod's own name resolves nowhere else, and torchrun gives that name to other nodes.
bool sync_job_service(V1JobContext& context) {
  const std::string& name = context.name();
  const auto is_it = [&name](const ServiceView& service) { return service.name == name; };
  if (std::ranges::any_of(context.observed.services, is_it)) return true;
  // Pods that run do not get a host name any more. One that was refused is left out.
  if (!context.framework.has_services || total_replicas(context.job) == 0 || could_name_pod(name) ||
      !context.observed.pods.empty() || is_job_service_refused(context))
    return false;
  // A Service of another owner is left alone.
  const Json* const existing = context.find_dependent(kube::kServices, name);
  if (existing && !context.is_owner_of(*existing)) return false;
  const Json labels = kube::to_json(base_labels(context.framework, name));
  Json spec = Json::object({{"clusterIP", "None"}, {"selector", labels}});
  context.create(
      kube::kServices, name,
      Json::object({{"metadata", Json::object({{"labels", labels}})}, {"spec", std::move(spec)}}),
      kBeforePods, "FailedCreateService");
  return true;
}

}  // namespace

bool is_job_service_refused(const V1JobContext& context) {
  const kube::Refusal* refusal = context.observed.refusal;
  return refusal && refusal->resource == kube::kServices && refusal->name == context.name();
}

std::int64_t total_replicas(const V1Job& job) {
  std::int64_t total = 0;
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    total += std::max(spec.replicas.value_or(1), 0);
  return total;
}

std::string pod_name(std::string_view job, const Framework& framework, std::string_view role,
                     std::int32_t index) {
  std::string name = fmt::format("{}-{}", job, to_lower(role));
  return role == framework.lone_role ? name : fmt::format("{}-{}", name, index);
}

kube::StringMap base_labels(const Framework& framework, std::string_view job) {
  kube::StringMap labels;
  labels.emplace(kV1OperatorNameKey, std::string(framework.singular) + "-controller");
  labels.emplace(kV1JobNameKey, job);
  return labels;
}

std::string selector_of(const Framework& framework, std::string_view job, std::string_view type) {
  kube::StringMap labels = base_labels(framework, job);
  labels.emplace(kV1ReplicaTypeKey, type);
  std::string text;
  for (const auto& [key, value] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  return text;
}

Json make_pod(const Framework& framework, const V1Job& job, const ReplicaSpec& spec,
              const PodSlot& slot, const Settings& settings) {
  // A pod gets labels, annotations and finalizers of the template's metadata (PodControl,
  // GetPodFromTemplate). Pods of MPIJobs get no finalizers (newWorker, newLauncher).
  Json metadata = Json::object();
  for (const char* member : {"labels", "annotations", "finalizers"})
    if (const Json* value = spec.template_.get("metadata").find(member))
      metadata.set(member, *value);
  if (!framework.lone_role.empty()) metadata.erase("finalizers");
  Json pod = Json::object({{"metadata", std::move(metadata)}});
  pod.set("spec", spec.template_.get("spec"));
  kube::StringMap labels = labels_of(framework, job, slot);
  if (framework.is_master(job, slot)) labels.emplace(kV1JobRoleKey, "master");
  kube::add_labels(pod, labels);
  framework.set_cluster_spec(job, slot, settings, pod);
  pod["spec"].set("restartPolicy", spec.restartPolicy == "ExitCode" ? "Never" : spec.restartPolicy);
  decorate_for_gang(settings, job.metadata.name, to_lower(slot.role), pod);
  return pod;
}

Json make_service(const Framework& framework, const V1Job& job, const ReplicaSpec& spec,
                  const PodSlot& slot) {
  const Json labels = kube::to_json(labels_of(framework, job, slot));
  Json ports = Json::array();
  if (const Json* container = kube::find_container(spec.template_, framework.container))
    for (const Json& port : container->get_array("ports"))
      if (!port.get_string("name").empty())
        ports.push_back(
            Json::object({{"name", port.get("name")}, {"port", port.get("containerPort")}}));
  return Json::object(
      {{"metadata", Json::object({{"labels", labels}})},
       {"spec", Json::object({{"clusterIP", "None"}, {"selector", labels}, {"ports", ports}})}});
}

void sync_pods(V1JobContext& context, Batch batch) {
  std::vector<std::string_view> services;
  for (const ServiceView& service : context.observed.services) services.push_back(service.name);
  std::sort(services.begin(), services.end());
  const bool has_job_service = sync_job_service(context);
  const bool is_complete = std::ranges::all_of(context.roles, [&](const RoleState& role) {
    return sync_role(context, role, services, has_job_service, batch);
  });
  if (!is_complete) context.plan.requeue_within(std::chrono::milliseconds(0));
  remove_surplus(context);
  warn_about_templates(context);
}

void remove_surplus(V1JobContext& context) {
  // Upstream makes no event about the removed workers of an MPIJob that is scaled down.
  const bool is_silent = !context.framework.lone_role.empty();
  for (const V1PodView* pod : context.surplus) {
    if (!is_silent)
      context.remove_pod(*pod);
    else if (!pod->is_deleting)
      context.remove(kube::kPods, pod->name, pod->uid, "FailedDeletePod");
  }
  std::vector<std::string_view> wanted;
  for (const RoleState& role : context.roles)
    wanted.insert(wanted.end(), role.names.begin(), role.names.end());
  if (!wanted.empty()) wanted.push_back(context.name());
  std::sort(wanted.begin(), wanted.end());
  for (const ServiceView& service : context.observed.services)
    if (!std::binary_search(wanted.begin(), wanted.end(), service.name))
      context.remove_service(service);
}

// A running pod that is being deleted counts as failed. A pending pod that is being deleted does
// not count.
void count_pods(V1JobContext& context) {
  const auto& stored = context.status.replicaStatuses;
  for (RoleState& role : context.roles) {
    std::int32_t missing = 0;
    for (const V1PodView* pod : role.pods) {
      if (pod == nullptr)
        ++missing;
      else if (pod->phase == "Succeeded")
        ++role.counters.succeeded;
      else if (pod->phase == "Failed" || (pod->phase == "Running" && pod->is_deleting &&
                                          !context.framework.keeps_failed_pods))
        ++role.counters.failed;
      else if (pod->phase == "Running")
        ++role.counters.active;
    }
    // Pods that succeeded and were then removed do not run again. The status only has their number,
    // so it is certain only if no other pod of the role is missing.
    const auto before = stored ? stored->find(role.name) : ReplicaStatuses::const_iterator();
    if (!stored || before == stored->end()) continue;
    const std::int64_t gone = std::int64_t{before->second.succeeded} - role.counters.succeeded;
    if (gone <= 0 || gone != missing) continue;
    role.succeeded_gone = missing;
    role.counters.succeeded += missing;
  }
}

}  // namespace trainer::v1
