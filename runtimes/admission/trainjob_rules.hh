// The rules for TrainJobs that need more than the job and its runtime. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/field_error.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// Patches change only while nothing runs by them.
kube::FieldErrors check_patch_gate(const TrainJob& before, const TrainJob& after,
                                   const AdmissionLookups& lookups);
// Volcano's priority classes exist.
kube::FieldErrors check_priority_classes(const Runtime& runtime, const AdmissionLookups& lookups);
// The names that check_priority_classes() looks up.
std::vector<std::string> priority_classes_of(const Runtime& runtime);

// PersistentVolumeClaims that the pods of this job mount by name, with the replicated job that
// does.
struct MountedClaim {
  std::string name;
  std::string replicated_job;
};
std::vector<MountedClaim> mounted_claims(const TrainJob& job, const Runtime& runtime);
// Claims of one machine under a job of several nodes, runtimes the SDK would confuse: what is
// allowed and will not work.
void warn_about_surroundings(const TrainJob& job, const Runtime& runtime,
                             const AdmissionLookups& lookups, std::vector<std::string>& warnings);

}  // namespace trainer
