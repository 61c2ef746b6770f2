// These rules for TrainJobs need more than the job and its runtime. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/field_error.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// spec.runtimePatches may change only if the TrainJob is suspended before or after the update, and
// no Job of its JobSet is active. Once the job has run, only the settings that its Jobs also apply
// later may change.
kube::FieldErrors check_patches_may_change(const TrainJob& before, const TrainJob& after,
                                           const AdmissionLookups& lookups);
// The schema allows adding and removing trainer and initializer. It is not allowed once the job has
// run, since its Jobs do not change.
kube::FieldErrors check_parts_may_change(const TrainJob& before, const TrainJob& after);
// The priority classes that a plugin needs must exist.
kube::FieldErrors check_priority_classes(const Runtime& runtime, const pipeline::Plugins& plugins,
                                         const AdmissionLookups& lookups);
// Returns the names that check_priority_classes() looks up.
std::vector<std::string> priority_classes_of(const Runtime& runtime,
                                             const pipeline::Plugins& plugins);

// This is a PersistentVolumeClaim that pods of this replicated job mount by name.
struct MountedClaim {
  std::string name;
  std::string replicated_job;
};
std::vector<MountedClaim> mounted_claims(const TrainJob& job, const Runtime& runtime);
// Warns about settings that are allowed and will not work, because of other objects: claims that
// one machine can mount under a job of several nodes; a TrainingRuntime with the name of the job's
// ClusterTrainingRuntime.
void warn_about_other_objects(const TrainJob& job, const Runtime& runtime,
                              const AdmissionLookups& lookups, std::vector<std::string>& warnings);

}  // namespace trainer
