// MPIJobs of kubeflow.org/v2beta1, as mpi-operator serves them.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer::mpijob {

// This kind has manifests of its own (KindRegistration::option).
inline constexpr const char* kOption = "mpi";

KindRegistration mpijob_registration(const KindOptions& options);

}  // namespace trainer::mpijob
