#include "runtimes/plugins/jax/jax.hh"

#include <fmt/format.h>

#include <string>

#include "runtimes/pipeline/pod_sets.hh"

namespace trainer::pipeline {

void Jax::enforce_ml_policy(Draft& draft) const {
  const MlPolicy* policy = draft.ml_policy();
  if (policy == nullptr || !policy->jax) return;
  apply_num_nodes(draft, "spec.trainer.numNodes");
  const auto index = draft.find_ancestor(kTrainerStep);
  if (!index || !draft.job.spec.trainer) return;
  auto container = draft.edit(*index, kNode, source());
  if (!container) return;
  container->env("JAX_NUM_PROCESSES", std::to_string(draft.pod_sets[*index].count));
  container->env_completion_index("JAX_PROCESS_ID");
  container->env("JAX_COORDINATOR_ADDRESS",
                 fmt::format("{}:{}", draft.first_host(*index), kTrainerPort));
  container->port(kTrainerPort);
}

}  // namespace trainer::pipeline
