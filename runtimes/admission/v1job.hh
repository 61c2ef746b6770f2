// Admission of V1 jobs.
#pragma once

#include "runtimes/admission/admission.hh"
#include "runtimes/v1/framework.hh"

namespace trainer {

// No webhook writes a V1 job: there is no counterpart that mutates.
AdmissionAnswer validate_v1job(const AdmissionRequest& request, const v1::Framework& framework);

}  // namespace trainer
