// What a cluster has beside this program and local mode brings along: a Job controller and a
// scheduler, as registrations.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer {

// Beside production's registry, in local mode only; no manifest has them.
Registry local_registry();

}  // namespace trainer
