// This plugin is for PyTorch's torchrun, and torchtune on top of it (Kubeflow Trainer,
// pkg/runtime/framework/plugins/torch).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/pipeline/failure_policy.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/process_checks.hh"
#include "runtimes/pipeline/reserved_env.hh"
#include "runtimes/plugins/torch/elastic.hh"
#include "runtimes/plugins/torch/launcher.hh"
#include "runtimes/plugins/torch/process_count.hh"
#include "runtimes/plugins/torch/process_restarts.hh"
#include "runtimes/plugins/torch/torchtune.hh"

namespace trainer::pipeline {

namespace {

const TorchPolicy* policy_of(const Draft& draft) {
  const MlPolicy* policy = draft.ml_policy();
  return policy != nullptr && policy->torch ? &*policy->torch : nullptr;
}

// Each process needs this, so that all of them find each other (torch.distributed: rendezvous).
struct Rendezvous {
  std::int32_t nodes = 1;
  std::string processes;
  std::string master;
  bool sets_process_env = false;         // launcher env: no torchrun sets it
  std::optional<std::int32_t> restarts;  // those of processes in their pods
  std::optional<ElasticPolicy> elastic;
};

void inject_size(ContainerEdit& container, const Rendezvous& rendezvous) {
  container.env("PET_NNODES", rendezvous.elastic ? rendezvous.elastic->range()
                                                 : std::to_string(rendezvous.nodes));
  container.env("PET_NPROC_PER_NODE", rendezvous.processes);
  container.env_completion_index("PET_NODE_RANK");
}

void inject_master(ContainerEdit& container, const Draft& draft, const Rendezvous& rendezvous) {
  container.env("PET_MASTER_ADDR", rendezvous.master);
  container.env("PET_MASTER_PORT", std::to_string(kTrainerPort));
  if (rendezvous.restarts)
    inject_process_restarts(container, draft, rendezvous.master, *rendezvous.restarts,
                            rendezvous.elastic.has_value());
  if (!rendezvous.sets_process_env) return;
  // torchrun gives these to its processes (torch.distributed, "Environment variable
  // initialization").
  container.env("MASTER_ADDR", rendezvous.master);
  container.env("MASTER_PORT", std::to_string(kTrainerPort));
  container.env("WORLD_SIZE", std::to_string(rendezvous.nodes));
  container.env_completion_index("RANK");
  container.env("LOCAL_RANK", "0");
}

kube::FieldError missing_target(const Draft& draft, std::string_view job,
                                std::string_view container) {
  return kube::invalid(
      "spec.runtimeRef", draft.job.spec.runtimeRef.name,
      fmt::format(
          "envInjection target podSet \"{}\" container \"{}\" not found in runtime template", job,
          container));
}

void inject_targets(Draft& draft, const TorchPolicy& policy, const Rendezvous& rendezvous,
                    std::string_view source) {
  if (!policy.envInjection) return;
  for (const EnvInjectionTarget& target : policy.envInjection->targets) {
    const auto index = draft.find_job(target.jobName);
    for (const std::string& name : target.containerNames) {
      auto container = index ? draft.edit_any(*index, name, source) : std::nullopt;
      if (!container) {
        draft.errors.push_back(missing_target(draft, target.jobName, name));
        continue;
      }
      inject_size(*container, rendezvous);
      inject_master(*container, draft, rendezvous);
    }
  }
}

// Only a command that starts one Python process is changed.
void start_by_torchrun(Draft& draft, std::string_view source) {
  const CommandLine line = command_line_of(draft);
  if (what_starts(line) != Starts::kPython) return;
  draft.command = command_by_torchrun(line);
  draft.command_source = source;
}

void check_launcher(const Draft& draft, const TorchPolicy& policy, kube::FieldErrors& errors) {
  const auto launcher = launcher_of(draft.job, policy);
  if (!launcher) return errors.push_back(launcher.error());
  if (*launcher != Launcher::kEnv) return;
  refuse_reserved_env(draft.job, {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK"},
                      "launcher env sets them from spec.trainer.numNodes", errors);
  const auto desired = desired_processes(draft, policy);
  if (!desired || desired->number.value_or(1) <= 1) return;
  const bool is_of_job = trainer_of(draft.job).numProcPerNode.has_value();
  errors.push_back(kube::invalid(
      is_of_job ? "spec.trainer.numProcPerNode" : "spec.runtimeRef",
      is_of_job ? kube::Json(*desired->number) : kube::Json(draft.job.spec.runtimeRef.name),
      fmt::format("launcher env starts one process a node, and {} is {}: leave that out, or use "
                  "launcher torchrun",
                  is_of_job ? "numProcPerNode" : "mlPolicy.torch.numProcPerNode of the runtime",
                  *desired->number)));
}

// No variable has a number if torchrun counts the processes itself.
void check_number(const Draft& draft, const TorchPolicy& policy, kube::FieldErrors& errors) {
  const auto index = draft.find_ancestor(kTrainerStep);
  const auto launcher = launcher_of(draft.job, policy);
  if (!index || !launcher || *launcher == Launcher::kEnv) return;
  const auto desired = desired_processes(draft, policy);
  const ProcessCount count =
      count_processes(desired, draft.trainer_container(), draft.options.devices);
  if (count.number)
    check_processes(draft, *index, {*count.number, desired && desired->number}, errors);
}

void warn_about_processes(const Draft& draft, std::vector<std::string>& warnings) {
  const auto& processes = trainer_of(draft.job).numProcPerNode;
  if (!processes) return;
  const std::int64_t devices = count_accelerators(draft.trainer_container(), draft.options.devices);
  if (devices > 0 && devices != *processes)
    warnings.push_back(
        fmt::format("spec.trainer.numProcPerNode: {} processes for {} devices on each node; leave "
                    "it out to start one process a device",
                    *processes, devices));
}

class Torch final : public Plugin {
 public:
  std::string_view source() const override { return "plugin torch"; }
  bool is_active(const Draft& draft) const override;
  std::string_view variables_of_nodes(const MlPolicy& policy) const override {
    return policy.torch ? "PET_*" : "";
  }
  void enforce_ml_policy(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
  void warn_inactive(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace

bool Torch::is_active(const Draft& draft) const {
  return policy_of(draft) != nullptr;
}

void Torch::enforce_ml_policy(Draft& draft) const {
  const TorchPolicy* policy = policy_of(draft);
  apply_num_nodes(draft, "spec.trainer.numNodes");
  const auto index = draft.find_ancestor(kTrainerStep);
  const auto launcher = launcher_of(draft.job, *policy);
  if (!launcher) return draft.errors.push_back(launcher.error());

  ProcessCount processes = count_processes(desired_processes(draft, *policy),
                                           draft.trainer_container(), draft.options.devices);
  Rendezvous rendezvous;
  rendezvous.sets_process_env = *launcher == Launcher::kEnv;
  if (rendezvous.sets_process_env) processes.number = 1;
  rendezvous.nodes = index ? draft.pod_sets[*index].count : 1;
  rendezvous.processes = processes.to_string();
  rendezvous.master = index ? draft.first_host(*index)
                            : fmt::format("{}-{}-0-0.{}", draft.name(), kNode, draft.subdomain());
  rendezvous.restarts = process_restarts_of(draft, *policy);
  rendezvous.elastic = elastic_policy_of(*policy);
  if (rendezvous.elastic && index) make_elastic(draft, *index, *rendezvous.elastic, source());
  if (rendezvous.restarts)
    draft.set_annotation(kProcessRestartsKey, std::to_string(*rendezvous.restarts), source());

  if (!draft.trainer_container().is_null() && !draft.is_stored_without(*index, "PET_NNODES")) {
    draft.edit(*index, kNode, "spec.trainer.env")->env_of_job(trainer_of(draft.job).env);
    auto container = draft.edit(*index, kNode, source());
    inject_size(*container, rendezvous);
    if (torchtune::is_torchtune(draft.command)) {
      // torchtune takes its rendezvous from the command line, where an address in the environment
      // would contradict it.
      draft.command = torchtune::command_for(
          draft.job.spec.runtimeRef.name, rendezvous.nodes, processes, rendezvous.master,
          draft.args.value_or(std::vector<std::string>{}), container->json().get_array("command"));
      draft.command_source = source();
    } else {
      inject_master(*container, draft, rendezvous);
      if (*launcher == Launcher::kTorchrun) start_by_torchrun(draft, source());
    }
    container->port(kTrainerPort);
  }
  inject_targets(draft, *policy, rendezvous, source());
}

void Torch::validate(const Draft& draft, kube::FieldErrors& errors) const {
  const TorchPolicy* policy = policy_of(draft);
  if (policy->envInjection) {
    for (const EnvInjectionTarget& target : policy->envInjection->targets) {
      const auto index = draft.find_job(target.jobName);
      for (const std::string& name : target.containerNames)
        if (!index || kube::find_any_container(draft.pod_template(*index), name) == nullptr)
          errors.push_back(missing_target(draft, target.jobName, name));
    }
  }
  refuse_reserved_env(
      draft.job,
      {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"},
      "set spec.trainer.numNodes and spec.trainer.numProcPerNode; other torchrun settings go into "
      "spec.trainer.args or PET_* variables that are not reserved, such as PET_RDZV_BACKEND",
      errors);
  check_launcher(draft, *policy, errors);
  check_number(draft, *policy, errors);
  check_process_restarts(draft, *policy, errors);
  check_elastic(draft, *policy, errors);
  if (!torchtune::is_torchtune(trainer_of(draft.job).command)) return;
  torchtune::validate(draft, desired_processes(draft, *policy), errors);
}

void Torch::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  const TorchPolicy* policy = policy_of(draft);
  if (draft.runtime.metadata.annotations.contains(kLauncherAnnotation))
    warnings.push_back(
        fmt::format("spec.runtimeRef: annotation {} of runtime \"{}\" has no effect there: set "
                    "mlPolicy.torch.launcher in the runtime, or annotate the TrainJob",
                    kLauncherAnnotation, draft.runtime.metadata.name));
  warn_about_processes(draft, warnings);
  warn_about_command(draft, *policy, warnings);
  warn_about_process_restarts(draft, *policy, warnings);
}

void Torch::warn_inactive(const Draft& draft, std::vector<std::string>& warnings) const {
  if (!draft.job.metadata.annotations.contains(kLauncherAnnotation)) return;
  warnings.push_back(fmt::format("{}: has no effect, because runtime \"{}\" has no mlPolicy.torch",
                                 kube::join_key("metadata.annotations", kLauncherAnnotation),
                                 draft.runtime.metadata.name));
}

std::unique_ptr<const Plugin> make_torch() {
  return std::make_unique<Torch>();
}

}  // namespace trainer::pipeline
