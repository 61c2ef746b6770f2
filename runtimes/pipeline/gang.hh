// Which pods have to start together.
#pragma once

#include <cstdint>
#include <vector>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// The gang: the jobs that train, and all that can start with them. A job is
// outside when the trainer waits for it (an initializer), when another job awaits its completion,
// or when it waits for a member itself (an MPI launcher, an evaluation): its pods do not exist
// while the gang is being placed, so a gang that counted them would never be complete. One flag for
// each replicated job. Needs nothing but the names and dependencies.
std::vector<bool> gang_members(const Draft& draft);

struct GangSize {
  std::int64_t pods = 0;
  kube::ResourceList requests;  // of all pods together
};

// Call after finalize_pod_sets().
GangSize size_of_gang(const Draft& draft, const std::vector<bool>& members);

}  // namespace trainer::pipeline
