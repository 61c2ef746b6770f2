// This plugin is for jobs whose framework needs nothing but a number of nodes; it is active for
// xgboost and flux, too (Kubeflow Trainer, pkg/runtime/framework/plugins/plainml).
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/warnings.hh"

namespace trainer::pipeline {

namespace {

class PlainMl final : public Plugin {
 public:
  std::string_view source() const override { return "plugin plainml"; }
  bool is_active(const Draft& draft) const override;
  void enforce_ml_policy(Draft& draft) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace

bool PlainMl::is_active(const Draft& draft) const {
  const MlPolicy* policy = draft.ml_policy();
  return policy == nullptr || !(policy->torch || policy->mpi || policy->jax);
}

void PlainMl::enforce_ml_policy(Draft& draft) const {
  apply_num_nodes(draft, "spec.trainer.numNodes");
  const auto index = draft.find_ancestor(kTrainerStep);
  if (!index) return;
  if (auto container = draft.edit(*index, kNode, "spec.trainer.env"))
    container->env_of_job(trainer_of(draft.job).env);
}

void PlainMl::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  const MlPolicy* policy = draft.ml_policy();
  if (policy == nullptr || !policy->flux) warn_about_one_process(draft, warnings);
}

std::unique_ptr<const Plugin> make_plainml() {
  return std::make_unique<PlainMl>();
}

}  // namespace trainer::pipeline
