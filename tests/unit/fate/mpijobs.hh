// MPIJobs of v2beta1.
#pragma once

#include "tests/unit/fate/subject.hh"

namespace trainer::fate {

// A job with both roles.
Subject mpijob_subject();

}  // namespace trainer::fate
