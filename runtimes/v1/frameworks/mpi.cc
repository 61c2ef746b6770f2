// MPIJob of kubeflow.org/v1 (pkg/controller.v1/mpi): the launcher reaches the workers by `kubectl
// exec`, without SSH and without Services.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/kinds/v1job_schema.hh"
#include "kube/model/patch.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "runtimes/lifecycle/processes.hh"
#include "runtimes/v1/frameworks/support.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1::mpi {

extern const Framework kMPIJob;

namespace {

using kube::Json;

constexpr std::string_view kLauncher = "Launcher";
constexpr std::string_view kKubectlVolume = "mpi-job-kubectl";
constexpr std::string_view kKubectlPath = "/opt/kube";
constexpr std::string_view kConfigVolume = "mpi-job-config";
constexpr std::string_view kConfigPath = "/etc/mpi";
constexpr std::string_view kExecScript = "/etc/mpi/kubexec.sh";

std::string launcher_name(const V1Job& job) {
  return job.metadata.name + "-launcher";
}

std::string config_name(const V1Job& job) {
  return job.metadata.name + "-config";
}

const Json& launcher_spec(const V1Job& job) {
  return find_spec(job, kLauncher)->template_.get("spec");
}

// A launcher with GPUs is one of the hosts of the MPI job, too.
bool is_gpu_launcher(const V1Job& job) {
  for (const Json& container : launcher_spec(job).get_array("containers"))
    for (const auto& [name, amount] : container.get("resources").get_object("limits"))
      if (name.find("gpu") != std::string::npos) return true;
  return false;
}

// ---- objects beside the pods

Json make_config(const V1JobContext& context) {
  const V1Job& job = context.job;
  const std::int32_t slots = process_count(job.spec.slotsPerWorker.value_or(1));
  const std::string& container = job.spec.mainContainer;
  std::string hosts;
  std::string script = "#!/bin/sh";
  if (is_gpu_launcher(job)) {
    hosts = fmt::format("{} slots={}\n", launcher_name(job), slots);
    script += fmt::format("\necho {}:{}\n", launcher_name(job), slots);
  }
  for (std::int32_t i = 0; i < replicas_of(job, kWorker); ++i)
    hosts += fmt::format("{} slots={}\n", host(job, kWorker, i), slots);
  std::vector<std::string_view> running;
  if (const RoleState* workers = context.find_role(kWorker))
    for (const V1PodView* pod : workers->pods)
      if (pod && pod->phase == "Running") running.push_back(pod->name);
  std::sort(running.begin(), running.end());
  for (const std::string_view pod : running) script += fmt::format("\necho {}:{}", pod, slots);
  const std::string exec = fmt::format(
      "#!/bin/sh\nset -x\nhost=$1\nshift\n{}/kubectl exec \"$host\"{}{} -- /bin/sh -c \"$*\"\n",
      kKubectlPath, container.empty() ? "" : " --container ", container);
  return Json::object(
      {{"data",
        Json::object({{"hostfile", hosts}, {"discover_hosts.sh", script}, {"kubexec.sh", exec}})}});
}

// Measures the ConfigMap once all workers run: a line of the hostfile and one of the script for
// each host.
std::vector<GeneratedText> measure(const V1Job& job, const Settings&) {
  constexpr std::int64_t kMaxConfigMapBytes = std::int64_t{1}
                                              << 20;  // the limit of its values, in Kubernetes
  constexpr std::int64_t kScripts = 300;              // the three files without hosts
  constexpr std::int64_t kAround = sizeof(" slots=\n\necho :\n") - 1;
  const auto workers = std::int64_t{replicas_of(job, kWorker)};
  const std::int64_t slots =
      std::ssize(std::to_string(process_count(job.spec.slotsPerWorker.value_or(1))));
  const auto shortest = static_cast<std::int64_t>(host(job, kWorker, 0).size());
  GeneratedText text;
  text.name = "the ConfigMap with the hostfile";
  text.path = role_path(kMPIJob, kWorker) + ".replicas";
  text.bytes = kScripts + std::ssize(job.spec.mainContainer) +
               (workers + 1) * (2 * (shortest + slots) + kAround) + 2 * further_digits(workers);
  text.limit = kMaxConfigMapBytes;
  text.why = "Kubernetes takes no larger";
  text.is_in_pods = false;
  return {std::move(text)};
}

// Without workers the rule about exec would allow every pod of the namespace.
Json make_role(const V1Job& job) {
  Json pods = Json::array();
  for (std::int32_t i = 0; i < replicas_of(job, kWorker); ++i)
    pods.push_back(host(job, kWorker, i));
  Json rules = Json::array({Json::object({{"apiGroups", Json::array({""})},
                                          {"resources", Json::array({"pods"})},
                                          {"verbs", Json::array({"get", "list", "watch"})}})});
  if (!pods.empty())
    rules.push_back(Json::object({{"apiGroups", Json::array({""})},
                                  {"resources", Json::array({"pods/exec"})},
                                  {"resourceNames", std::move(pods)},
                                  {"verbs", Json::array({"create"})}}));
  return Json::object({{"rules", std::move(rules)}});
}

Json make_role_binding(const V1Job& job, const std::string& account) {
  return Json::object({{"subjects", Json::array({Json::object({{"kind", "ServiceAccount"},
                                                               {"name", account},
                                                               {"namespace", job.metadata.ns}})})},
                       {"roleRef", Json::object({{"apiGroup", kube::kRoles.group},
                                                 {"kind", kube::kRoles.kind},
                                                 {"name", launcher_name(job)}})}});
}

// Creates the object, or updates its members. Returns false if it has another owner.
bool sync_object(V1JobContext& context, const kube::Resource& resource, const std::string& name,
                 Json desired) {
  const Json* stored = context.find_dependent(resource, name);
  if (stored == nullptr) {
    desired["metadata"].set("labels", Json::object({{"app", context.name()}}));
    const int stage = resource == kube::kRoleBindings ? kAfterRbacRoles : kBeforePods;
    context.create(resource, name, std::move(desired), stage, "ErrResourceExists");
    return true;
  }
  // An event that upstream makes in each reconcile.
  if (resource != kube::kConfigMaps) {
    const std::string noun = resource == kube::kRoles ? "LauncherRole" : resource.kind;
    context.relay("Normal", noun + " is exist", noun + ": " + name);
  }
  if (resource == kube::kServiceAccounts) return true;  // users may have their own
  if (!context.is_owner_of(*stored)) {
    context.plan.memory = kube::Plan::Memory::kReadAgain;
    return context.block(
        fmt::format("Resource \"{}\" of MPIJobKind \"{}\" already exists and is "
                    "not managed by MPIJob",
                    name, resource.kind));
  }
  Json change = Json::object();
  for (const auto& [member, value] : desired.as_object()) {
    if (member == "roleRef") continue;
    // Keys that other clients added are removed, too. Otherwise each reconcile would write again.
    Json difference = kube::merge_diff(stored->get(member), value);
    if (!difference.is_null()) change.set(member, std::move(difference));
  }
  if (!change.empty()) context.patch(resource, name, std::move(change), kBeforePods);
  return true;
}

bool is_launcher_over(const V1JobContext& context) {
  const RoleState* launcher = context.find_role(kLauncher);
  const V1PodView* pod = launcher && !launcher->pods.empty() ? launcher->pods.front() : nullptr;
  return pod && pod->is_over();
}

bool sync_dependents(V1JobContext& context) {
  const V1Job& job = context.job;
  if (job.is_suspended() || is_launcher_over(context)) return true;
  std::string account(launcher_spec(job).get_string("serviceAccountName", launcher_name(job)));
  if (account.empty()) account = launcher_name(job);
  // If one object has another owner, those after it are not made.
  return sync_object(context, kube::kServiceAccounts, account, Json::object()) &&
         sync_object(context, kube::kConfigMaps, config_name(job), make_config(context)) &&
         sync_object(context, kube::kRoles, launcher_name(job), make_role(job)) &&
         sync_object(context, kube::kRoleBindings, launcher_name(job),
                     make_role_binding(job, account));
}

// ---- pods

Json mount(std::string_view volume, std::string_view path) {
  return Json::object({{"name", volume}, {"mountPath", path}});
}

Json item(std::string_view file, int mode) {
  return Json::object({{"key", file}, {"path", file}, {"mode", mode}});
}

Json config_volume(const V1Job& job, Json items) {
  return Json::object(
      {{"name", kConfigVolume},
       {"configMap", Json::object({{"name", config_name(job)}, {"items", std::move(items)}})}});
}

// Brings kubectl to the launcher's containers.
Json delivery_container(const V1Job& job, const Settings& settings) {
  const Json amounts =
      Json::object({{"cpu", "100m"}, {"memory", "512Mi"}, {"ephemeral-storage", "5Gi"}});
  Json container = Json::object(
      {{"name", "kubectl-delivery"},
       {"image", settings.kubectl_delivery_image},
       {"imagePullPolicy", "IfNotPresent"},
       {"resources", Json::object({{"limits", amounts}, {"requests", amounts}})},
       {"volumeMounts",
        Json::array({mount(kKubectlVolume, kKubectlPath), mount(kConfigVolume, kConfigPath)})}});
  Environment env;
  env.set("TARGET_DIR", std::string(kKubectlPath));
  env.set("NAMESPACE", job.metadata.ns);
  env.add_to(container);
  return container;
}

void add_launcher_env(const V1Job& job, Json& container) {
  Environment env;
  env.set("OMPI_MCA_plm_rsh_agent", std::string(kExecScript));
  env.set("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile");
  if (!is_gpu_launcher(job)) {
    env.set("NVIDIA_VISIBLE_DEVICES", "");
    env.set("NVIDIA_DRIVER_CAPABILITIES", "");
  }
  // The user's value of these two variables is kept.
  if (!kube::find_env(container, "I_MPI_HYDRA_BOOTSTRAP")) env.set("I_MPI_HYDRA_BOOTSTRAP", "rsh");
  if (!kube::find_env(container, "I_MPI_HYDRA_BOOTSTRAP_EXEC"))
    env.set("I_MPI_HYDRA_BOOTSTRAP_EXEC", std::string(kExecScript));
  env.add_to(container);
}

void set_launcher_spec(const V1Job& job, const Settings& settings, Json& pod) {
  Json& spec = pod["spec"];
  if (spec.get_string("serviceAccountName").empty())
    spec.set("serviceAccountName", launcher_name(job));
  spec["initContainers"].push_back(delivery_container(job, settings));
  Json& container = containers_of(pod).front();
  add_launcher_env(job, container);
  container["volumeMounts"].push_back(mount(kKubectlVolume, kKubectlPath));
  container["volumeMounts"].push_back(mount(kConfigVolume, kConfigPath));
  spec["volumes"].push_back(Json::object({{"name", kKubectlVolume}, {"emptyDir", Json::object()}}));
  spec["volumes"].push_back(
      config_volume(job, Json::array({item("kubexec.sh", 0555), item("hostfile", 0444),
                                      item("discover_hosts.sh", 0555)})));
}

void set_cluster_spec(const V1Job& job, const PodSlot& slot, const Settings& settings, Json& pod) {
  if (slot.role == kLauncher) return set_launcher_spec(job, settings, pod);
  Json& container = containers_of(pod).front();
  if (container.get_array("command").empty())
    container.set("command", Json::array({"sleep"})).set("args", Json::array({"365d"}));
  container["volumeMounts"].push_back(mount(kConfigVolume, kConfigPath));
  pod["spec"]["volumes"].push_back(config_volume(job, Json::array({item("kubexec.sh", 0555)})));
}

// ---- the rest

void set_defaults(V1Job& job) {
  const auto workers = job.spec.replicaSpecs.find(kWorker);
  if (workers != job.spec.replicaSpecs.end() && !workers->second.replicas)
    workers->second.replicas = 0;
}

void check(const V1Job& job, kube::FieldErrors& errors, std::vector<std::string>&) {
  const ReplicaSpec* launcher = find_spec(job, kLauncher);
  if (launcher == nullptr)
    errors.push_back(kube::required(role_path(kMPIJob, kLauncher), "must be present"));
  else if (launcher->replicas.value_or(1) != 1)
    errors.push_back(kube::forbidden(role_path(kMPIJob, kLauncher) + ".replicas", "must be 1"));
}

void check_new(const V1Job& job, kube::FieldErrors& errors) {
  const auto& slots = job.spec.slotsPerWorker;
  if (!slots) return;
  if (std::string why = refusal_of_processes(total_replicas(job), *slots); !why.empty())
    errors.push_back(kube::invalid("spec.slotsPerWorker", *slots, std::move(why)));
}

bool is_master(const V1Job&, const PodSlot& slot) {
  return slot.role == kLauncher;
}

void report_evictions(V1JobContext& context, const RoleState& workers) {
  const auto evicted =
      std::count_if(workers.pods.begin(), workers.pods.end(), [](const V1PodView* pod) {
        return pod && pod->phase == "Failed" && pod->reason == "Evicted";
      });
  if (evicted > 0)
    context.relay("Warning", "MPIJobEvicted",
                  fmt::format("{}/{} workers are evicted", evicted, workers.replicas));
}

void update_status(V1JobContext& context) {
  const std::string job = "MPIJob " + context.job.metadata.key().to_string();
  if (is_launcher_over(context)) {
    // Workers are not counted any more, and none is created again.
    context.leaves_pods = true;
    for (RoleState& role : context.roles)
      if (role.name == kWorker) role.counters = {};
  }
  decide_by_one_role(context, kLauncher, "MPIJobFailed");
  const RoleState* workers = context.find_role(kWorker);
  if (context.is_true(kRunning) && (!workers || workers->counters.active == workers->replicas))
    context.relay("Normal", "MPIJobRunning", job + " is running");
  if (context.is_true(kSucceeded))
    context.report("Normal", "mpijobsSucceeded", job + " successfully completed.");
  const RoleState* launcher = context.find_role(kLauncher);
  if (launcher->counters.failed > 0) {
    const std::string& why = launcher->pods.front()->reason;
    context.relay("Warning", why.empty() ? "MPIJobFailed" : std::string_view(why),
                  job + " has failed");
  }
  if (workers && !context.leaves_pods) report_evictions(context, *workers);
}

// The CRD has the members of v2beta1 at v1, too.
void warn_of_other_version(const JobSpec& spec, std::vector<std::string>& out) {
  const std::pair<std::string_view, bool> members[] = {
      {"runLauncherAsWorker", spec.runLauncherAsWorker.has_value()},
      {"sshAuthMountPath", !spec.sshAuthMountPath.empty()},
      {"launcherCreationPolicy", !spec.launcherCreationPolicy.empty()},
      {"mpiImplementation", !spec.mpiImplementation.empty()}};
  for (const auto& [member, is_set] : members)
    if (is_set)
      out.push_back(fmt::format(
          "spec.{}: has no effect at kubeflow.org/v1, where a launcher reaches its workers by "
          "kubectl exec; write apiVersion kubeflow.org/v2beta1 for a job that uses SSH",
          member));
}

void warn(const V1Job& job, std::vector<std::string>& out) {
  warn_of_other_version(job.spec, out);
  const ReplicaSpec* workers = find_spec(job, kWorker);
  if (workers == nullptr) return;
  const auto& containers = workers->template_.get("spec").get_array("containers");
  if (containers.empty() || !containers[0].get_array("command").empty() ||
      containers[0].get_array("args").empty())
    return;
  out.push_back(fmt::format(
      "{}.template.spec.containers[0].args: has no effect, because a worker without a command "
      "sleeps until mpirun starts processes in it; write a command too, or leave it out",
      role_path(kMPIJob, kWorker)));
}

}  // namespace

const Framework kMPIJob{
    .resource = {"kubeflow.org", "v1", "mpijobs", "MPIJob", true},
    .singular = "mpijob",
    .name = "mpi",
    .replica_specs = "mpiReplicaSpecs",
    .roles = {kLauncher, kWorker},
    .container = "",
    .port_name = "",
    .restart_policy = "Never",
    .has_services = false,
    .lone_role = kLauncher,
    .counts_all_roles = true,
    .keeps_failed_pods = true,
    .template_restart_reason = "SettedPodTemplateRestartPolicy",
    .template_scheduler_reason = "SettedPodTemplateSchedulerName",
    .has_webhook = false,
    .shares_crd = true,
    .is_master = is_master,
    .set_defaults = set_defaults,
    .check = check,
    .check_new = check_new,
    .warn = warn,
    .set_cluster_spec = set_cluster_spec,
    .measure = measure,
    .update_status = update_status,
    .sync_dependents = sync_dependents,
    .dependents = {kube::kServiceAccounts, kube::kConfigMaps, kube::kRoles, kube::kRoleBindings},
    .crd = {.members = kMPIJobMembers, .is_age_first = true},
};

}  // namespace trainer::v1::mpi
