// V1 jobs in `render`, `why` and `logs`. Pure.
#pragma once

#include "controller/registration/kind_registration.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::v1 {

void add_job_hooks(KindRegistration& registration, const Framework& framework);

}  // namespace trainer::v1
