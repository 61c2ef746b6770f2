// The pods of both roles (mpi-operator, pkg/controller: newWorker, newLauncherPodTemplate).
#include <fmt/format.h>

#include <utility>

#include "kube/model/pod_template.hh"
#include "runtimes/mpijob/context.hh"
#include "runtimes/views/labels.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;

constexpr std::string_view kSshVolume = "ssh-auth";
constexpr std::string_view kConfigVolume = "mpi-job-config";
constexpr std::string_view kConfigPath = "/etc/mpi";
constexpr std::string_view kHostFile = "/etc/mpi/hostfile";
constexpr std::string_view kRootSsh = "/root/.ssh";
constexpr std::string_view kConnectionAttempts = "-o ConnectionAttempts=10";

Json& main_container(Json& pod) {
  return pod["spec"]["containers"].as_array().front();
}

// A variable that the user has set, too, is in the list twice: the last one counts.
void add_env(Json& container, std::string_view name, std::string_view value) {
  container["env"].push_back(Json::object({{"name", name}, {"value", value}}));
}

void mount(Json& pod, Json volume, std::string_view path) {
  main_container(pod)["volumeMounts"].push_back(
      Json::object({{"name", volume.get_string("name")}, {"mountPath", path}}));
  pod["spec"]["volumes"].push_back(std::move(volume));
}

void mount_ssh_keys(const v1::V1Job& job, Json& pod) {
  const auto item = [](std::string_view key, std::string_view path) {
    return Json::object({{"key", key}, {"path", path}});
  };
  Json secret = Json::object(
      {{"secretName", job.metadata.name + "-ssh"},
       {"items", Json::array({item("ssh-privatekey", "id_rsa"), item("ssh-publickey", "id_rsa.pub"),
                              item("ssh-publickey", "authorized_keys")})}});
  // A user other than root could not read files of this mode, since they belong to root.
  if (job.spec.sshAuthMountPath == kRootSsh) secret.set("defaultMode", 0600);
  mount(pod, Json::object({{"name", kSshVolume}, {"secret", std::move(secret)}}),
        job.spec.sshAuthMountPath);
}

void mount_config(const v1::V1Job& job, Json& pod) {
  const auto item = [](std::string_view key, int mode) {
    return Json::object({{"key", key}, {"path", key}, {"mode", mode}});
  };
  Json config_map = Json::object(
      {{"name", job.metadata.name + "-config"},
       {"items", Json::array({item("hostfile", 0444), item("discover_hosts.sh", 0555)})}});
  mount(pod, Json::object({{"name", kConfigVolume}, {"configMap", std::move(config_map)}}),
        kConfigPath);
}

void add_implementation_env(const v1::V1Job& job, Json& container) {
  const std::string slots = std::to_string(*job.spec.slotsPerWorker);
  if (job.spec.mpiImplementation == "Intel") {
    add_env(container, "I_MPI_HYDRA_HOST_FILE", kHostFile);
    add_env(container, "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", kConnectionAttempts);
    add_env(container, "I_MPI_PERHOST", slots);
  } else if (job.spec.mpiImplementation == "MPICH") {
    add_env(container, "HYDRA_HOST_FILE", kHostFile);
    add_env(container, "HYDRA_LAUNCH_EXTRA_ARGS", kConnectionAttempts);
  } else {
    add_env(container, "OMPI_MCA_orte_keep_fqdn_hostnames", "true");
    add_env(container, "OMPI_MCA_orte_default_hostfile", kHostFile);
    add_env(container, "OMPI_MCA_plm_rsh_args", kConnectionAttempts);
    add_env(container, "OMPI_MCA_orte_set_default_slots", slots);
  }
}

// Makes what the pods of both roles have. It takes labels and annotations of the template's
// metadata, and nothing else.
Json make_pod(const v1::V1Job& job, const v1::ReplicaSpec& role, std::string_view role_label,
              const std::string& hostname) {
  Json metadata = Json::object();
  for (const char* member : {"labels", "annotations"})
    if (const Json* value = role.template_.get("metadata").find(member))
      metadata.set(member, *value);
  Json pod = Json::object({{"metadata", std::move(metadata)}});
  pod.set("spec", role.template_.get("spec"));
  kube::add_labels(pod, {{std::string(kV1OperatorNameKey), "mpi-operator"},
                         {std::string(kV1JobNameKey), job.metadata.name},
                         {std::string(kV1JobRoleKey), std::string(role_label)}});
  Json& spec = pod["spec"];
  spec.set("hostname", hostname).set("subdomain", job.metadata.name);
  spec.set("restartPolicy", role.restartPolicy);
  if (spec.get_bool("hostNetwork")) spec.set("dnsPolicy", "ClusterFirstWithHostNet");
  return pod;
}

}  // namespace

Json make_worker(const v1::V1Job& job, std::int32_t index, const MPISettings& settings) {
  Json pod =
      make_pod(job, *find_role(job, kWorker), "worker", worker_name(job.metadata.name, index));
  const std::int32_t first = *job.spec.runLauncherAsWorker ? 1 : 0;  // the launcher has index 0
  kube::add_labels(pod, {{std::string(kV1ReplicaIndexKey), std::to_string(first + index)}});
  Json& container = main_container(pod);
  if (container.get_array("command").empty() && container.get_array("args").empty())
    container.set("command", Json::array({"/usr/sbin/sshd", "-De"}));
  add_env(container, "K_MPI_JOB_ROLE", "worker");
  // The domain is this one whatever the settings are; so it is in mpi-operator.
  pod["spec"]["dnsConfig"]["searches"].push_back(
      fmt::format("{}.{}.svc.cluster.local", job.metadata.name, job.metadata.ns));
  mount_ssh_keys(job, pod);
  mark_for_gang(settings, job.metadata.name, pod);
  return pod;
}

Json make_launcher_template(const v1::V1Job& job, const MPISettings& settings) {
  Json pod =
      make_pod(job, *find_role(job, kLauncher), "launcher", launcher_name(job.metadata.name));
  if (*job.spec.runLauncherAsWorker)
    kube::add_labels(pod, {{std::string(kV1ReplicaIndexKey), "0"}});
  Json& container = main_container(pod);
  add_env(container, "K_MPI_JOB_ROLE", "launcher");
  add_implementation_env(job, container);
  // No value hides the devices of a machine from a launcher that computes nothing.
  if (!*job.spec.runLauncherAsWorker)
    for (const char* name : {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"})
      container["env"].push_back(Json::object({{"name", name}}));
  mount_ssh_keys(job, pod);
  mount_config(job, pod);
  mark_for_gang(settings, job.metadata.name, pod);
  return pod;
}

}  // namespace trainer::mpijob
