// V1 jobs are admitted here.
#pragma once

#include "runtimes/admission/admission.hh"
#include "runtimes/v1/framework.hh"

namespace trainer {

// V1 jobs have no mutating webhook.
AdmissionAnswer validate_v1job(const AdmissionRequest& request, const v1::Framework& framework,
                               const v1::Settings& settings = {});

}  // namespace trainer
