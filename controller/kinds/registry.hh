// The kinds of this program.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer {

// Production's registry. A test can leave kinds out, or pass its own.
Registry production_registry(const KindOptions& options);
// All kinds, also those that are off unless configured; for subcommands.
Registry full_registry();

}  // namespace trainer
