// JobSets, as one registration.
#pragma once

#include <memory>

#include "controller/kinds/jobset/jobset_state.hh"
#include "controller/registration/kind_registration.hh"

namespace trainer {

KindRegistration jobset_registration(const KindOptions& options,
                                     std::shared_ptr<JobSetState> shared);

}  // namespace trainer
