#include "runtimes/plugins/plainml/plainml.hh"

#include "runtimes/pipeline/converted_env.hh"
#include "runtimes/pipeline/pod_sets.hh"

namespace trainer::pipeline {

void PlainMl::enforce_ml_policy(Draft& draft) const {
  const MlPolicy* policy = draft.ml_policy();
  if (policy != nullptr && (policy->torch || policy->mpi || policy->jax)) return;
  apply_num_nodes(draft, "spec.trainer.numNodes");
  const auto index = draft.find_ancestor(kTrainerStep);
  if (!index || !draft.job.spec.trainer) return;
  if (auto container = draft.edit(*index, kNode, "spec.trainer.env"))
    for (const kube::Json& variable : draft.job.spec.trainer->env)
      container->env(converted_env(variable));
}

}  // namespace trainer::pipeline
