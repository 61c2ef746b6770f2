// A gang is the pods that have to start together.
#pragma once

#include <cstdint>
#include <vector>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Returns one flag for each replicated job: whether its pods are in the gang. These are the jobs
// that train, and all that can start with them. A job is not in the gang in three cases: the
// trainer waits for it (an initializer), another job waits for its completion, or it waits for a
// member itself (an MPI launcher, an evaluation). Its pods do not exist while the gang is being
// scheduled, so a gang that counted them would never be complete. Reads nothing but names and
// dependencies.
std::vector<bool> gang_members(const Draft& draft);

struct GangSize {
  std::int64_t pods = 0;
  kube::ResourceList requests;  // the requests of all pods together
};

// Call this after finalize_pod_sets().
GangSize size_of_gang(const Draft& draft, const std::vector<bool>& members);

}  // namespace trainer::pipeline
