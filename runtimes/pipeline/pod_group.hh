// The PodGroups of different schedulers have this in common.
#pragma once

#include "kube/model/meta.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Makes a PodGroup with the job's name, and with minMember and minResources of the gang. Call it
// after finalize_pod_sets().
DependentObject make_pod_group(const Draft& draft, const kube::Resource& resource);

}  // namespace trainer::pipeline
