// TrainJobs and their runtimes in `render`, `why` and `logs`. Pure.
#pragma once

#include <string_view>

#include "api/trainjob.hh"
#include "controller/registration/kind_registration.hh"

namespace trainer {

void add_trainjob_hooks(KindRegistration& registration);

ObjectState trainjob_state(const TrainJob& job, std::string_view program);

}  // namespace trainer
