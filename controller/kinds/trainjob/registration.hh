// TrainJobs and their runtimes, as one registration.
#pragma once

#include <memory>

#include "controller/kinds/jobset/jobset_state.hh"
#include "controller/registration/kind_registration.hh"

namespace trainer {

KindRegistration trainjob_registration(const KindOptions& options,
                                       std::shared_ptr<JobSetState> shared);

}  // namespace trainer
