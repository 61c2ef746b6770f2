// V1 jobs of each kind.
#pragma once

#include "runtimes/v1/framework.hh"
#include "tests/unit/fate/subject.hh"

namespace trainer::fate {

// A job of the kind with all its roles.
Subject v1_subject(const v1::Framework& framework);

// Admission, and all that is created, with each gang scheduler and without.
Outcome render_v1(const v1::Framework& framework, const kube::Json& job);

}  // namespace trainer::fate
