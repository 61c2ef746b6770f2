// Admission of V1 jobs.
#pragma once

#include "controller/admission/webhook.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::v1 {

// Under the names and paths of upstream (Training Operator, manifests/base/webhook). No webhook
// writes a job.
AdmissionRegistration job_admission(const Framework& framework, const Settings& settings);

}  // namespace trainer::v1
