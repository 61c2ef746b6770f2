// The kinds of this program.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace trainer {

// Production's. A test may take kinds out, or pass others.
Registry production_registry(const KindOptions& options);

}  // namespace trainer
