// JobSets in `render`, `why` and `logs`. Pure.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer {

void add_jobset_hooks(KindRegistration& registration);

// Adds the Service and the Jobs of a JobSet. Errors: it cannot be read.
kube::FieldErrors add_jobs(const kube::Json& jobset, const FeatureGates& gates,
                           jobset::JobDecorators decorators, Rendered& rendered);

// Returns the place from the labels of a pod of a JobSet; nullopt for any other pod.
std::optional<PodPlace> read_jobset_place(const kube::ObjectMeta& pod);

}  // namespace trainer
