#include "api/describe/runtime.hh"
#include "api/kinds/kinds.hh"

namespace trainer {
namespace {

ApiKind runtime_kind(const kube::Resource& resource) {
  return {resource,
          {{.name = "v1alpha1", .make_schema = root_schema<Runtime>, .has_status = false}}};
}

}  // namespace

ApiKind training_runtime_kind() {
  return runtime_kind(kTrainingRuntimes);
}

ApiKind cluster_training_runtime_kind() {
  return runtime_kind(kClusterTrainingRuntimes);
}

}  // namespace trainer
