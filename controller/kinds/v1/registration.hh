// Each kind of V1 jobs is one registration.
#pragma once

#include "controller/registration/kind_registration.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::v1 {

// V1 jobs have manifests of their own (KindRegistration::option).
inline constexpr const char* kOption = kTrainingOperatorOption;

KindRegistration job_registration(const KindOptions& options, const Framework& framework);

}  // namespace trainer::v1
