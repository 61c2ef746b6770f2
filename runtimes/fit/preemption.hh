// Kueue preempts workloads of the same ClusterQueue, or of others that have borrowed, as the
// policies of the ClusterQueue say (pkg/scheduler/preemption, without fair sharing). Pure.
#pragma once

#include <vector>

#include "runtimes/fit/flavor_assigner.hh"

namespace trainer::fit {

// Returns the workloads that Kueue would preempt so that the job gets these requests; none if that
// is not possible. `scarce` are the flavors that have too little left. The workloads are those of
// the state. The tree is used for trials, and is the same again afterwards.
std::vector<const QueuedWorkload*> find_targets(const KueueState& state, QuotaTree& tree,
                                                const Contender& job, const FlavorUsage& requests,
                                                const FlavorSet& scarce);

}  // namespace trainer::fit
