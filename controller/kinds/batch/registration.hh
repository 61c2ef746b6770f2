// These registrations run what a cluster has already and what local mode must provide itself: a Job
// controller and a scheduler.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer {

// Returns the registrations of local mode, in addition to production's registry; no manifest has
// them.
Registry local_registry();

}  // namespace trainer
