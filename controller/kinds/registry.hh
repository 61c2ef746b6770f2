// The registry has the kinds of this program.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer {

// Production's registry. A test can leave kinds out, or pass its own.
Registry production_registry(const KindOptions& options);
// Returns all kinds, also those that must be configured; subcommands use it.
Registry full_registry();

}  // namespace trainer
