// This plugin sets up JAX's distributed initialisation (Kubeflow Trainer,
// pkg/runtime/framework/plugins/jax).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "runtimes/lifecycle/processes.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/warnings.hh"

namespace trainer::pipeline {

namespace {

class Jax final : public Plugin {
 public:
  std::string_view source() const override { return "plugin jax"; }
  bool is_active(const Draft& draft) const override;
  std::string_view variables_of_nodes(const MlPolicy& policy) const override {
    return policy.jax ? "JAX_*" : "";
  }
  void enforce_ml_policy(Draft& draft) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace

bool Jax::is_active(const Draft& draft) const {
  const MlPolicy* policy = draft.ml_policy();
  return policy != nullptr && policy->jax;
}

void Jax::enforce_ml_policy(Draft& draft) const {
  apply_num_nodes(draft, "spec.trainer.numNodes");
  const auto index = draft.find_ancestor(kTrainerStep);
  if (!index || draft.is_stored_without(*index, "JAX_NUM_PROCESSES")) return;
  auto container = draft.edit(*index, kNode, source());
  if (!container) return;
  container->env("JAX_NUM_PROCESSES", std::to_string(process_count(draft.pod_sets[*index].count)));
  container->env_completion_index("JAX_PROCESS_ID");
  container->env("JAX_COORDINATOR_ADDRESS",
                 fmt::format("{}:{}", draft.first_host(*index), kTrainerPort));
  container->port(kTrainerPort);
}

void Jax::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  warn_about_one_process(draft, warnings);
  if (!draft.find_ancestor(kTrainerStep)) return;
  static constexpr std::array<std::string_view, 3> kOwn = {"JAX_NUM_PROCESSES", "JAX_PROCESS_ID",
                                                           "JAX_COORDINATOR_ADDRESS"};
  const auto& env = trainer_of(draft.job).env;
  for (std::size_t i = 0; i < env.size(); ++i)
    if (const std::string_view name = env[i].get_string("name");
        std::ranges::find(kOwn, name) != kOwn.end())
      warnings.push_back(fmt::format(
          "{}: {} replaces what the runtime sets, so that the nodes do not find each other; leave "
          "it out",
          kube::join_index("spec.trainer.env", i), name));
}

std::unique_ptr<const Plugin> make_jax() {
  return std::make_unique<Jax>();
}

}  // namespace trainer::pipeline
