// The number of nodes of an elastic TrainJob changes while it runs (docs/users/elastic.md). Pure.
#pragma once

#include "runtimes/trainjob/plan.hh"

namespace trainer {

// Says in the status what spec.trainer.numNodes may become, and adds the write that gives a running
// JobSet the number that it says now. The status says nothing where the number may not change: in
// any other job, in a finished one, in a queue of Kueue, and where another controller has the
// JobSets. `jobset` is the job's own, or nullptr.
void settle_elastic(const TrainJobObserved& observed, const JobSet* jobset, TrainJobStatus& status,
                    TrainJobPlan& plan);

}  // namespace trainer
