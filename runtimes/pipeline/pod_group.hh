// What the PodGroups of different schedulers have in common.
#pragma once

#include "kube/model/meta.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// A PodGroup named like the job, with minMember and minResources of the gang. Call
// after finalize_pod_sets().
DependentObject make_pod_group(const Draft& draft, const kube::Resource& resource);

}  // namespace trainer::pipeline
