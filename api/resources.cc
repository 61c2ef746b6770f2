#include "api/jobset.hh"
#include "api/runtime.hh"
#include "api/trainjob.hh"

namespace trainer {

const kube::Resource kTrainJobs{"trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", true};
const kube::Resource kTrainingRuntimes{"trainer.kubeflow.org", "v1alpha1", "trainingruntimes",
                                       "TrainingRuntime", true};
const kube::Resource kClusterTrainingRuntimes{
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", false};
const kube::Resource kJobSets{"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true};

}  // namespace trainer
