// MPIJobs of v2beta1 in `render`, `why` and `logs`. Pure.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer::mpijob {

void add_mpijob_hooks(KindRegistration& registration);

}  // namespace trainer::mpijob
