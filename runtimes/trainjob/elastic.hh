// The number of nodes of an elastic TrainJob changes while it runs (docs/users/elastic.md). Pure.
#pragma once

#include <optional>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/plan.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

// Returns what spec.trainer.numNodes may become; nullopt if it may not change: in any other job, in
// a finished one, and where another controller has the JobSets. `jobset` is the job's own.
std::optional<ElasticStatus> elastic_status(const TrainJobObserved& observed, const JobSet& jobset,
                                            const TrainJobStatus& status);

// Returns the write that gives a running JobSet the number of nodes of its job; nullopt if it has
// it, and if it cannot have it.
std::optional<kube::Action> resize_jobset(const TrainJobObserved& observed);

}  // namespace trainer
