// The defaults of a job, its names, and what makes it invalid (mpi-operator, pkg/apis/kubeflow).
#include <fmt/format.h>

#include <algorithm>

#include "kube/model/names.hh"
#include "runtimes/mpijob/context.hh"
#include "runtimes/views/text.hh"

namespace trainer::mpijob {
namespace {

using kube::FieldErrors;
using kube::Json;

// The limits of one job: Kubernetes takes no larger ConfigMap, and each pod is an object.
constexpr std::int64_t kMaxWorkers = 10'000;
constexpr std::int64_t kMaxConfigMapBytes = std::int64_t{1} << 20;
constexpr std::size_t kMaxContainers = 1'000;

void check_name(const v1::V1Job& job, FieldErrors& errors) {
  const std::string longest = worker_name(job.metadata.name, std::max(worker_count(job), 1) - 1);
  if (const std::string problems = kube::check_dns1035_label(longest); !problems.empty())
    errors.push_back(
        kube::invalid("metadata.name", job.metadata.name,
                      "will not able to create pod and service with invalid DNS label \"{}\": {}",
                      longest, problems));
}

void check_template(std::string_view role, const v1::ReplicaSpec& spec, FieldErrors& errors) {
  const std::string path = role_path(role);
  if (spec.restartPolicy != "Never" && spec.restartPolicy != "OnFailure")
    errors.push_back(
        kube::not_supported(path + ".restartPolicy", spec.restartPolicy, {"Never", "OnFailure"}));
  const std::string containers_path = path + ".template.spec.containers";
  const auto& containers = spec.template_.get("spec").get_array("containers");
  if (containers.empty())
    errors.push_back(kube::required(containers_path, "must define at least one container"));
  if (containers.size() > kMaxContainers)
    errors.push_back(kube::too_many(containers_path, containers.size(), kMaxContainers));
}

void check_not_negative(std::string_view path, std::optional<std::int64_t> value,
                        FieldErrors& errors) {
  if (value && *value < 0)
    errors.push_back(
        kube::invalid(std::string(path), *value, "must be greater than or equal to 0"));
}

void check_run_policy(const v1::RunPolicy& policy, FieldErrors& errors) {
  const auto& clean = policy.cleanPodPolicy;
  if (clean && *clean != "All" && *clean != "None" && *clean != "Running")
    errors.push_back(
        kube::not_supported("spec.runPolicy.cleanPodPolicy", *clean, {"All", "None", "Running"}));
  check_not_negative("spec.runPolicy.ttlSecondsAfterFinished", policy.ttlSecondsAfterFinished,
                     errors);
  check_not_negative("spec.runPolicy.activeDeadlineSeconds", policy.activeDeadlineSeconds, errors);
  check_not_negative("spec.runPolicy.backoffLimit", policy.backoffLimit, errors);
}

// This rule is not mpi-operator's. Without it one job could fill the memory of the controller.
void check_size(const v1::V1Job& job, const MPISettings& settings, FieldErrors& errors) {
  const std::string path = role_path(kWorker) + ".replicas";
  const std::int32_t workers = worker_count(job);
  if (workers > kMaxWorkers)
    return errors.push_back(kube::invalid(
        path, workers, "at most {} workers are possible; make several jobs", kMaxWorkers));
  if (const auto bytes = config_map_bytes(job, settings); bytes > kMaxConfigMapBytes)
    errors.push_back(kube::invalid(
        path, workers,
        "the ConfigMap with the hostfile would have {} bytes, and Kubernetes takes {}; set fewer "
        "workers, or a shorter name",
        bytes, kMaxConfigMapBytes));
}

}  // namespace

std::string role_path(std::string_view role) {
  return kube::join_key("spec.mpiReplicaSpecs", role);
}

std::string launcher_name(std::string_view job) {
  return fmt::format("{}-launcher", job);
}

std::string worker_name(std::string_view job, std::int32_t index) {
  return fmt::format("{}-worker-{}", job, index);
}

v1::V1Job with_defaults(const v1::V1Job& job) {
  v1::V1Job made = job;
  v1::JobSpec& spec = made.spec;
  if (!spec.runPolicy.cleanPodPolicy) spec.runPolicy.cleanPodPolicy = "None";
  if (!spec.slotsPerWorker) spec.slotsPerWorker = 1;
  if (!spec.runLauncherAsWorker) spec.runLauncherAsWorker = false;
  if (spec.sshAuthMountPath.empty()) spec.sshAuthMountPath = "/root/.ssh";
  if (spec.launcherCreationPolicy.empty()) spec.launcherCreationPolicy = "AtStartup";
  if (spec.mpiImplementation.empty()) spec.mpiImplementation = "OpenMPI";
  for (auto& [role, replicas] : spec.replicaSpecs) {
    const bool is_launcher = role == kLauncher;
    if (!is_launcher && role != kWorker) continue;
    if (!replicas.replicas) replicas.replicas = is_launcher ? 1 : 0;
    if (replicas.restartPolicy.empty())
      replicas.restartPolicy = is_launcher ? "OnFailure" : "Never";
  }
  return made;
}

const v1::ReplicaSpec* find_role(const v1::V1Job& job, std::string_view role) {
  const auto at = job.spec.replicaSpecs.find(role);
  return at == job.spec.replicaSpecs.end() ? nullptr : &at->second;
}

std::int32_t worker_count(const v1::V1Job& job) {
  const v1::ReplicaSpec* const workers = find_role(job, kWorker);
  return workers ? std::max(workers->replicas.value_or(0), 0) : 0;
}

FieldErrors validate(const v1::V1Job& job, const MPISettings& settings) {
  return validate_defaulted(with_defaults(job), settings);
}

FieldErrors validate_defaulted(const v1::V1Job& job, const MPISettings& settings) {
  FieldErrors errors;
  check_name(job, errors);
  const v1::ReplicaSpec* const launcher = find_role(job, kLauncher);
  if (!job.spec.has_replica_specs) {
    errors.push_back(kube::required("spec.mpiReplicaSpecs", "must have replica specs"));
  } else if (!launcher) {
    errors.push_back(kube::required(role_path(kLauncher), "must have Launcher replica spec"));
  } else {
    check_template(kLauncher, *launcher, errors);
    if (launcher->replicas != 1)
      errors.push_back(
          kube::invalid(role_path(kLauncher) + ".replicas", *launcher->replicas, "must be 1"));
  }
  if (const v1::ReplicaSpec* const workers = find_role(job, kWorker)) {
    check_template(kWorker, *workers, errors);
    if (*workers->replicas <= 0)
      errors.push_back(kube::invalid(role_path(kWorker) + ".replicas", *workers->replicas,
                                     "must be greater than or equal to 1"));
  }
  check_not_negative("spec.slotsPerWorker", job.spec.slotsPerWorker, errors);
  check_run_policy(job.spec.runPolicy, errors);
  check_size(job, settings, errors);
  return errors;
}

}  // namespace trainer::mpijob
