// This plugin is for XGBoost's tracker and workers (Kubeflow Trainer,
// pkg/runtime/framework/plugins/xgboost).
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "runtimes/lifecycle/processes.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/process_checks.hh"

namespace trainer::pipeline {

namespace {

constexpr std::string_view kReserved[] = {"DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID",
                                          "DMLC_NUM_WORKER"};

// There is one worker for each accelerator, or one for each node without accelerators.
std::int64_t workers_per_node(const Draft& draft, const kube::Json& container) {
  return std::max<std::int64_t>(1, count_accelerators(container, draft.options.devices));
}

class XgBoost final : public Plugin {
 public:
  std::string_view source() const override { return "plugin xgboost"; }
  bool is_active(const Draft& draft) const override;
  std::string_view variables_of_nodes(const MlPolicy& policy) const override {
    return policy.xgboost ? "DMLC_*" : "";
  }
  void enforce_ml_policy(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
};

}  // namespace

bool XgBoost::is_active(const Draft& draft) const {
  const MlPolicy* policy = draft.ml_policy();
  return policy != nullptr && policy->xgboost;
}

void XgBoost::enforce_ml_policy(Draft& draft) const {
  const auto index = draft.find_ancestor(kTrainerStep);
  if (!index || draft.is_stored_without(*index, "DMLC_TRACKER_URI")) return;
  auto container = draft.edit(*index, kNode, source());
  if (!container) return;
  const std::int64_t workers = workers_per_node(draft, container->json());
  container->env("DMLC_TRACKER_URI", draft.first_host(*index));
  container->env("DMLC_TRACKER_PORT", std::to_string(kTrainerPort));
  container->env_completion_index("DMLC_TASK_ID");
  container->env("DMLC_NUM_WORKER",
                 std::to_string(process_count(draft.pod_sets[*index].count, workers)));
  container->port(kTrainerPort);
}

void XgBoost::validate(const Draft& draft, kube::FieldErrors& errors) const {
  if (const auto index = draft.find_ancestor(kTrainerStep))
    check_processes(draft, *index, {workers_per_node(draft, draft.trainer_container())}, errors);
  const auto& env = trainer_of(draft.job).env;
  for (std::size_t i = 0; i < env.size(); ++i) {
    const std::string_view name = env[i].get_string("name");
    if (std::find(std::begin(kReserved), std::end(kReserved), name) == std::end(kReserved))
      continue;
    errors.push_back(
        kube::forbidden(kube::join_index("spec.trainer.env", i),
                        fmt::format("{} is reserved for the XGBoost runtime; set "
                                    "spec.trainer.numNodes and resourcesPerNode instead",
                                    name)));
  }
}

std::unique_ptr<const Plugin> make_xgboost() {
  return std::make_unique<XgBoost>();
}

}  // namespace trainer::pipeline
