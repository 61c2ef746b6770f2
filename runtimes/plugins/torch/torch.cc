// PyTorch's torchrun, and torchtune on top of it (Kubeflow Trainer,
// pkg/runtime/framework/plugins/torch).
#include <fmt/format.h>

#include <array>
#include <string>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/converted_env.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/reserved_env.hh"
#include "runtimes/plugins/torch/process_count.hh"
#include "runtimes/plugins/torch/torchtune.hh"

namespace trainer::pipeline {

namespace {

const TorchPolicy* policy_of(const Draft& draft) {
  const MlPolicy* policy = draft.ml_policy();
  return policy != nullptr && policy->torch ? &*policy->torch : nullptr;
}

// What every process of the job has to know to find the others.
struct Rendezvous {
  std::int32_t nodes = 1;
  std::string processes;
  std::string master;
};

void inject_size(ContainerEdit& container, const Rendezvous& rendezvous) {
  container.env("PET_NNODES", std::to_string(rendezvous.nodes));
  container.env("PET_NPROC_PER_NODE", rendezvous.processes);
  container.env_completion_index("PET_NODE_RANK");
}

void inject_master(ContainerEdit& container, const Rendezvous& rendezvous) {
  container.env("PET_MASTER_ADDR", rendezvous.master);
  container.env("PET_MASTER_PORT", std::to_string(kTrainerPort));
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
      inject_master(*container, rendezvous);
    }
  }
}

class Torch final : public Plugin {
 public:
  std::string_view source() const override { return "plugin torch"; }
  bool is_active(const Draft& draft) const override;
  void enforce_ml_policy(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace

bool Torch::is_active(const Draft& draft) const {
  return policy_of(draft) != nullptr;
}

void Torch::enforce_ml_policy(Draft& draft) const {
  const TorchPolicy* policy = policy_of(draft);
  apply_num_nodes(draft, "spec.trainer.numNodes");
  const auto index = draft.find_ancestor(kTrainerStep);
  const auto& trainer = draft.job.spec.trainer;

  const ProcessCount processes =
      count_processes(trainer ? trainer->numProcPerNode : std::nullopt, draft.trainer_container());
  Rendezvous rendezvous;
  rendezvous.nodes = index ? draft.pod_sets[*index].count : 1;
  rendezvous.processes = processes.to_string();
  rendezvous.master = index ? draft.first_host(*index)
                            : fmt::format("{}-{}-0-0.{}", draft.name(), kNode, draft.subdomain());

  // Without a trainer section nothing is injected: such jobs run the runtime's own command.
  if (trainer && !draft.trainer_container().is_null()) {
    if (auto container = draft.edit(*index, kNode, "spec.trainer.env"))
      for (const kube::Json& variable : trainer->env) container->env(converted_env(variable));
    auto container = draft.edit(*index, kNode, source());
    inject_size(*container, rendezvous);
    if (torchtune::is_torchtune(trainer->command)) {
      // torchtune takes its rendezvous from the command line, where an address in the environment
      // would contradict it.
      draft.command = torchtune::command_for(draft.job.spec.runtimeRef.name, rendezvous.nodes,
                                             processes, rendezvous.master,
                                             trainer->args.value_or(std::vector<std::string>{}),
                                             container->json().get_array("command"));
      draft.command_source = source();
    } else {
      inject_master(*container, rendezvous);
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
  const auto& trainer = draft.job.spec.trainer;
  if (!trainer || !torchtune::is_torchtune(trainer->command)) return;
  torchtune::validate(draft.job, draft.trainer_container(), errors);
}

void Torch::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  const auto& trainer = draft.job.spec.trainer;
  if (!trainer || !trainer->numProcPerNode) return;
  const ProcessCount processes =
      count_processes(trainer->numProcPerNode, draft.trainer_container());
  if (processes.accelerators > 0 && processes.accelerators != *processes.number)
    warnings.push_back(
        fmt::format("spec.trainer.numProcPerNode: {} processes for {} devices on each node; leave "
                    "it out to start one process a device",
                    *processes.number, processes.accelerators));
}

std::unique_ptr<const Plugin> make_torch() {
  return std::make_unique<Torch>();
}

}  // namespace trainer::pipeline
