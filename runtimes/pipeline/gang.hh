// Which pods have to start together.
#pragma once

#include <cstdint>
#include <vector>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// One flag for each replicated job: whether its pods are in the gang. These are the jobs that
// train, and all that can start with them. A job is not in the gang when the trainer waits for it
// (an initializer), when another job waits for its completion, or when it waits for a member itself
// (an MPI launcher, an evaluation): its pods do not exist while the gang is being scheduled, so a
// gang that counted them would never be complete. Reads nothing but names and dependencies.
std::vector<bool> gang_members(const Draft& draft);

struct GangSize {
  std::int64_t pods = 0;
  kube::ResourceList requests;  // of all pods together
};

// Call after finalize_pod_sets().
GangSize size_of_gang(const Draft& draft, const std::vector<bool>& members);

}  // namespace trainer::pipeline
