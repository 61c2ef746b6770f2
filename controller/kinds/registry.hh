// The kinds of this program.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer {

// Production's registry. A test can leave kinds out, or pass its own.
Registry production_registry(const KindOptions& options);

}  // namespace trainer
