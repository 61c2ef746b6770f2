// Kueue asks other workloads before the job (pkg/cache/queue and pkg/scheduler). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtimes/fit/flavor_assigner.hh"

namespace trainer::fit {

struct QueuePosition {
  std::int64_t position = 0;  // 1 is the first; 0: not known
  std::int64_t pending = 0;   // without the job
};

// Reads it from the visibility API, else from Workloads, else from the count of the ClusterQueue.
QueuePosition position_of(const KueueState& state, const Contender& job, const std::string& ns);

// A job that fits may have to wait for the first workload of another ClusterQueue of the cohort.
// With StrictFIFO this one is asked each time, and what it lacks is kept free for it. Returns that
// workload. The tree is the same again afterwards.
std::optional<QueuedWorkload> find_earlier(const KueueState& state, QuotaTree& tree,
                                           const Contender& job, const Assignment& assignment);

}  // namespace trainer::fit
