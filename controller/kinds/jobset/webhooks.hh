// The JobSets' admission is made here.
#pragma once

#include <memory>

#include "controller/admission/webhook.hh"
#include "controller/kinds/jobset/jobset_state.hh"
#include "runtimes/jobset/gates.hh"

namespace trainer {

// The configurations belong to this controller alone: upstream's JobSet controller has others,
// which are never changed.
AdmissionRegistration jobset_admission(std::shared_ptr<const JobSetState> shared,
                                       const jobset::Gates& gates);

}  // namespace trainer
