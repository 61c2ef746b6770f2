#include "api/describe/optimization_job.hh"

#include "api/kinds/kinds.hh"

namespace trainer {

ApiKind optimization_job_kind() {
  return {{"trainer.kubeflow.org", "v1alpha1", "optimizationjobs", "OptimizationJob", true},
          {{.name = "v1alpha1", .make_schema = root_schema<OptimizationJob>}}};
}

}  // namespace trainer
