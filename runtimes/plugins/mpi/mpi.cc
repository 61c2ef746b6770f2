// MPI runs over SSH: OpenMPI (Kubeflow Trainer, pkg/runtime/framework/plugins/mpi), Intel MPI and
// MPICH (kubeflow/mpi-operator).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "kube/model/resources.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/lifecycle/processes.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/process_checks.hh"
#include "runtimes/pipeline/reserved_env.hh"
#include "runtimes/plugins/mpi/implementation.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/text.hh"

namespace trainer::pipeline {

namespace {

constexpr std::string_view kSshVolume = "mpi-ssh-auth";
// Files of a Secret belong to root. ssh refuses a private key of its own user that the group may
// read, so root's must not be readable for the group. Any other user can read it only as a member
// of the pod's fsGroup.
constexpr int kOwnerRead = 0400;
constexpr int kPrivateKeyOfRoot = 0600;
constexpr int kPrivateKey = 0640;
constexpr int kPublicKey = 0644;
constexpr int kReadOnly = 0444;
constexpr std::size_t kMaxConfigMap = 1 << 20;  // bytes; the API server refuses more

const MpiPolicy* policy_of(const Draft& draft) {
  const MlPolicy* policy = draft.ml_policy();
  return policy != nullptr && policy->mpi ? &*policy->mpi : nullptr;
}

std::string secret_name(const Draft& draft) {
  return draft.name() + "-mpi-ssh-auth";
}
std::string hostfile_name(const Draft& draft) {
  return draft.name() + "-mpi-hostfile";
}

// Returns the container in which the MPI processes run: a worker's, or the launcher's if there are
// no workers.
const kube::Json* process_container(const Draft& draft) {
  for (const std::string_view job : {kNode, kLauncher})
    if (const auto index = draft.find_job(job))
      if (const kube::Json* container = draft.container(*index, kNode)) return container;
  return nullptr;
}

// Returns the processes of a node: the TrainJob's number, else the runtime's; a runtime with 1
// means one process for each accelerator.
NodeProcesses processes_of(const Draft& draft, const MpiPolicy& policy) {
  if (const auto& own = trainer_of(draft.job).numProcPerNode) return {*own, true};
  const std::int64_t desired = policy.numProcPerNode.value_or(1);
  const kube::Json* container = process_container(draft);
  const std::int64_t devices =
      container == nullptr ? 0 : count_accelerators(*container, draft.options.devices);
  if (desired == 1 && devices > 1) return {devices};
  return {desired, true};
}

std::int32_t slots_of(const Draft& draft, const MpiPolicy& policy) {
  return process_count(processes_of(draft, policy).number);
}

std::optional<std::size_t> find_nodes(const Draft& draft) {
  const auto node = draft.find_job(kNode);
  return node ? node : draft.find_job(kLauncher);
}

// Only root can read root's home, so the keys below it are for root.
bool is_below_root_home(std::string_view keys) {
  constexpr std::string_view kHome = "/root";
  return keys == kHome || keys.substr(0, kHome.size() + 1) == "/root/";
}

kube::Json key_item(std::string_view key, int mode, std::string_view path) {
  return kube::Json::object({{"key", key}, {"mode", mode}, {"path", path}});
}

kube::Json ssh_volume(const Draft& draft, std::string_view keys) {
  const int private_key = is_below_root_home(keys) ? kPrivateKeyOfRoot : kPrivateKey;
  return kube::Json::object(
      {{"name", kSshVolume},
       {"secret",
        kube::Json::object({{"secretName", secret_name(draft)},
                            {"defaultMode", kOwnerRead},
                            {"items", kube::Json::array({
                                          key_item("ssh-privatekey", private_key, "id_rsa"),
                                          key_item("ssh-publickey", kPublicKey, "id_rsa.pub"),
                                          key_item("ssh-publickey", kPublicKey, "authorized_keys"),
                                      })}})}});
}

kube::Json hostfile_volume(const Draft& draft) {
  return kube::Json::object(
      {{"name", mpi::kHostfileVolume},
       {"configMap", kube::Json::object({{"name", hostfile_name(draft)},
                                         {"items", kube::Json::array({key_item(
                                                       "hostfile", kReadOnly, "hostfile")})}})}});
}

void set_worker_count(Draft& draft) {
  const auto node = draft.find_job(kNode);
  const auto& nodes = trainer_of(draft.job).numNodes;
  if (!node || !nodes) return;
  // A launcher that trains is one of the nodes. But there is always one worker.
  const std::int32_t count = draft.is_launcher_a_node() ? std::max(*nodes - 1, 1) : *nodes;
  draft.set_count(*node, count, "spec.trainer.numNodes");
}

kube::Json named_object(const kube::Resource& resource, const Draft& draft, std::string name) {
  return kube::Json::object(
      {{"apiVersion", resource.api_version()},
       {"kind", resource.kind},
       {"metadata",
        kube::Json::object({{"name", std::move(name)}, {"namespace", draft.job.metadata.ns}})}});
}

// Returns whether a command may start processes on other nodes: by mpirun or a similar program, or
// in a script, about which nothing is known.
bool may_start_mpi(const std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 10> kPrograms = {
      "sh",        "bash",       "dash",       "ash",     "zsh",
      "deepspeed", "horovodrun", "mlx.launch", "orterun", "prterun"};
  return std::ranges::any_of(words, [](const std::string& word) {
    const std::string_view name = std::string_view(word).substr(word.rfind('/') + 1);
    return name.find("mpi") != name.npos || name.ends_with(".sh") ||
           std::ranges::find(kPrograms, name) != kPrograms.end();
  });
}

// Warns about the job's own command, which runs only in the launcher.
void warn_about_command(const Draft& draft, std::int64_t slots,
                        std::vector<std::string>& warnings) {
  const Trainer& trainer = trainer_of(draft.job);
  const auto node = draft.find_job(kNode);
  if (!draft.find_job(kLauncher) || !node || !trainer.command || trainer.command->empty()) return;
  if (trainer.numNodes.value_or(1) < 2 && slots < 2) return;
  std::vector<std::string> words = *trainer.command;
  if (trainer.args) words.insert(words.end(), trainer.args->begin(), trainer.args->end());
  if (may_start_mpi(words)) return;
  warnings.push_back(fmt::format(
      "spec.trainer.command: \"{}\" is not mpirun, so one process runs in the launcher, "
      "and the other nodes wait; begin the command with mpirun",
      keep_head(words[0], 60)));
}

// Jobs and containers of these names get keys and hostfile; others do not.
void warn_about_names(const std::vector<ReplicatedJob>& jobs, std::vector<std::string>& warnings) {
  const ReplicatedJob* launcher = nullptr;
  const ReplicatedJob* other = nullptr;
  bool has_workers = false;
  for (const ReplicatedJob& job : jobs) {
    if (job.name == kLauncher) launcher = &job;
    has_workers = has_workers || job.name == kNode;
    if (job.name != kLauncher && job.name != kNode) {
      if (ancestor_of(job).empty() && other == nullptr) other = &job;
      continue;
    }
    const auto& containers = jobset::pod_spec_of(job).get_array("containers");
    if (std::none_of(containers.begin(), containers.end(), [](const kube::Json& container) {
          return container.get_string("name") == kNode;
        }))
      warnings.push_back(fmt::format(
          "spec.mlPolicy.mpi: job {} has no container called {}, so no SSH keys are mounted in it; "
          "call its container {}",
          job.name, kNode, kNode));
  }
  if (launcher != nullptr && !has_workers && other != nullptr)
    warnings.push_back(fmt::format(
        "spec.mlPolicy.mpi: no job is called {}, so the hostfile is empty and job {} gets no SSH "
        "keys; call it {}",
        kNode, other->name, kNode));
}

class Mpi final : public Plugin {
 public:
  std::string_view source() const override { return "plugin mpi"; }
  bool is_active(const Draft& draft) const override;
  void enforce_ml_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
  void warn_runtime(const Runtime& runtime, std::vector<std::string>& warnings) const override;
};

}  // namespace

bool Mpi::is_active(const Draft& draft) const {
  return policy_of(draft) != nullptr;
}

void Mpi::enforce_ml_policy(Draft& draft) const {
  const MpiPolicy* policy = policy_of(draft);
  const mpi::Implementation* implementation = mpi::Implementation::of(*policy);
  if (implementation == nullptr) {
    draft.errors.push_back(kube::invalid(
        "spec.runtimeRef", draft.job.spec.runtimeRef.name,
        fmt::format("mlPolicy.mpi.mpiImplementation \"{}\" of {} \"{}\" is not supported; use "
                    "OpenMPI, Intel or MPICH",
                    *policy->mpiImplementation, draft.runtime.kind, draft.runtime.metadata.name)));
    return;
  }
  set_worker_count(draft);
  const std::int32_t slots = slots_of(draft, *policy);
  const std::string keys = policy->sshAuthMountPath.value_or("/root/.ssh");
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    const bool is_launcher = draft.pod_sets[i].name == kLauncher;
    if (!is_launcher && draft.pod_sets[i].name != kNode) continue;
    draft.upsert_volume(i, ssh_volume(draft, keys), source());
    if (is_launcher) draft.upsert_volume(i, hostfile_volume(draft), source());
    auto container = draft.edit(i, kNode, source());
    if (!container) continue;
    container->mount(kube::Json::object({{"name", kSshVolume}, {"mountPath", keys}}));
    if (!is_launcher) continue;
    container->mount(
        kube::Json::object({{"name", mpi::kHostfileVolume}, {"mountPath", "/etc/mpi"}}));
    for (const auto& [name, value] : implementation->env(slots)) container->env(name, value);
  }
}

void Mpi::add_dependents(Draft& draft) const {
  const MpiPolicy* policy = policy_of(draft);
  const mpi::Implementation* implementation = mpi::Implementation::of(*policy);
  if (implementation == nullptr) return;
  const std::int32_t slots = slots_of(draft, *policy);
  std::string hosts;
  for (const PodSet& set : draft.pod_sets)
    if (set.name == kNode || (set.name == kLauncher && draft.is_launcher_a_node()))
      hosts += implementation->hostfile(set.endpoints(), slots);
  if (hosts.size() > kMaxConfigMap) {
    const auto node = draft.find_job(kNode);
    draft.errors.push_back(too_many_pods(
        draft, draft.pod_sets[node.value_or(0)],
        fmt::format(
            "the hostfile of ConfigMap \"{}\" would have {} bytes, and a ConfigMap holds {} "
            "at most: ask for fewer nodes, or shorten the name of the job",
            hostfile_name(draft), hosts.size(), kMaxConfigMap)));
    return;
  }

  DependentObject hostfile;
  hostfile.resource = kube::kConfigMaps;
  hostfile.object = named_object(kube::kConfigMaps, draft, hostfile_name(draft));
  hostfile.object.set("data", kube::Json::object({{"hostfile", hosts}}));
  draft.dependents.push_back(std::move(hostfile));

  DependentObject keys;
  keys.mode = DependentObject::Mode::kCreateOnce;
  keys.generate = DependentObject::Generate::kSshKeyPair;
  keys.resource = kube::kSecrets;
  keys.object = named_object(kube::kSecrets, draft, secret_name(draft));
  keys.object.set("type", "kubernetes.io/ssh-auth").set("immutable", true);
  draft.dependents.push_back(std::move(keys));
}

void Mpi::validate(const Draft& draft, kube::FieldErrors& errors) const {
  const mpi::Implementation* implementation = mpi::Implementation::of(*policy_of(draft));
  if (implementation == nullptr) return;
  if (const auto index = find_nodes(draft))
    check_processes(draft, *index, processes_of(draft, *policy_of(draft)), errors);
  const auto& nodes = trainer_of(draft.job).numNodes;
  if (nodes.value_or(1) >= 2 && draft.is_launcher_a_node() &&
      !(draft.find_job(kLauncher) && draft.find_job(kNode)))
    errors.push_back(kube::invalid(
        "spec.trainer.numNodes", *nodes,
        "must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either "
        "launcher and node"));
  refuse_reserved_env(draft.job, implementation->env_names(),
                      "they follow from spec.trainer.numNodes and numProcPerNode; pass other "
                      "settings as mpirun arguments",
                      errors);
}

void Mpi::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  const mpi::Implementation* implementation = mpi::Implementation::of(*policy_of(draft));
  if (implementation == nullptr) return;
  if (implementation->name() != "OpenMPI" && draft.job.metadata.labels.contains(kQueueLabel))
    warnings.push_back(
        fmt::format("metadata.labels[{}]: Kueue computes pod sets of OpenMPI only and refuses a "
                    "job of mpiImplementation {}, by default also one without the label; use a "
                    "runtime with OpenMPI",
                    kQueueLabel, implementation->name()));
  const Trainer& trainer = trainer_of(draft.job);
  const auto node = draft.find_job(kNode);
  const bool has_own_workers =
      node && draft.find_job(kLauncher) && !draft.is_launcher_a_node() && !draft.is_trainer(*node);
  if (has_own_workers && (trainer.image || trainer.resourcesPerNode))
    warnings.push_back(
        fmt::format("{}: reaches the launcher only, because runtime \"{}\" has "
                    "mlPolicy.mpi.runLauncherAsNode false; its workers keep "
                    "what the runtime gives them",
                    trainer.image ? "spec.trainer.image" : "spec.trainer.resourcesPerNode",
                    draft.runtime.metadata.name));
  warn_about_command(draft, slots_of(draft, *policy_of(draft)), warnings);
  const kube::Json* container = process_container(draft);
  const std::int64_t devices =
      container == nullptr ? 0 : count_accelerators(*container, draft.options.devices);
  if (trainer.numProcPerNode && devices > 0 && devices != *trainer.numProcPerNode)
    warnings.push_back(
        fmt::format("spec.trainer.numProcPerNode: {} processes for {} devices on each node",
                    *trainer.numProcPerNode, devices));
}

void Mpi::warn_runtime(const Runtime& runtime, std::vector<std::string>& warnings) const {
  const auto& policy = runtime.spec.mlPolicy;
  if (!policy || !policy->mpi) return;
  const auto& jobs = replicated_jobs_of(runtime);
  warn_about_names(jobs, warnings);
  if (policy->numNodes.value_or(1) <= 1) return;
  if (std::any_of(jobs.begin(), jobs.end(), [](const ReplicatedJob& job) {
        return job.name == kLauncher && ancestor_of(job) == kTrainerStep;
      }))
    warnings.push_back(fmt::format(
        "spec.mlPolicy.numNodes: counts the pods of job {0}, which carries the trainer's label, so "
        "{1} launchers would start; set 1 here, and parallelism in job {2}",
        kLauncher, *policy->numNodes, kNode));
}

std::unique_ptr<const Plugin> make_mpi() {
  return std::make_unique<Mpi>();
}

}  // namespace trainer::pipeline
