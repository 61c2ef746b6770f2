// The admission of V1 jobs is made here.
#pragma once

#include "controller/admission/webhook.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::v1 {

// Names and paths are upstream's (Training Operator, manifests/base/webhook). No webhook writes a
// job.
AdmissionRegistration job_admission(const Framework& framework, const Settings& settings);

}  // namespace trainer::v1
