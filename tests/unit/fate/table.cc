#include "tests/unit/fate/table.hh"

namespace trainer::fate {

std::span<const UnusedField> unused_fields() {
  static constexpr UnusedField kRows[] = {
      {"TrainJob", "valueFrom.fieldRef.apiVersion", "",
       "v1 is the only version that Kubernetes takes, and its default; upstream's conversion "
       "leaves "
       "it out, too (pkg/apply)"},
      {"patch", "spec.runtimePatches[].time", "",
       "says when the patch was written, for those who read the TrainJob"},
      {"V1", "template.metadata.name", "",
       "Kubernetes' controllers name what they make from a template themselves"},
      {"V1", "template.metadata.namespace", "",
       "Kubernetes' controllers make in their own namespace what they make from a template"},
      {"V1", "template.metadata.finalizers[]", "MPIJob",
       "upstream's MPI controller copies none into its pods (newWorker, newLauncher)"},
      {"MPIJob", "template.metadata.name", "",
       "Kubernetes' controllers name what they make from a template themselves"},
      {"MPIJob", "template.metadata.namespace", "",
       "Kubernetes' controllers make in their own namespace what they make from a template"},
      {"MPIJob", "template.metadata.finalizers[]", "",
       "mpi-operator copies none into its pods (newWorker, newLauncherPodTemplate)"},
  };
  return kRows;
}

std::span<const OwnedName> owned_names() {
  static constexpr OwnedName kRows[] = {
      {"TrainJob", "labels", "jobset.sigs.k8s.io/",
       "keys of the JobSet controller, by which it and its clients find Jobs and pods; upstream's "
       "writes them over others, too"},
      {"TrainJob", "annotations", "jobset.sigs.k8s.io/", "as the labels"},
      {"TrainJob", "labels", "trainer.kubeflow.org/trainjob-ancestor-step",
       "says what the job does: with another value the runtime is another one"},
      {"TrainJob", "env", "STORAGE_URI",
       "spec.initializer.dataset.storageUri is there to replace what the runtime says"},
      {"V1", "labels", "training.kubeflow.org/",
       "keys by which the controller, Services and clients find the pods; upstream writes them "
       "over "
       "others, too"},
      {"MPIJob", "labels", "training.kubeflow.org/",
       "as those of V1 jobs; mpi-operator writes them over others, too"},
  };
  return kRows;
}

}  // namespace trainer::fate
