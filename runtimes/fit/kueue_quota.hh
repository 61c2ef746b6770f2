// The ClusterQueue of a job's queue is compared with what its pods ask for in sum. Pure.
#pragma once

#include <optional>

#include "runtimes/fit/asked.hh"
#include "runtimes/fit/cluster_queue.hh"
#include "runtimes/fit/plan_fit.hh"

namespace trainer::fit {

struct QueueAnswer {
  Verdict verdict = Verdict::kFits;
  std::optional<Reason> reason;  // none for kFits
};

// A job that would have to borrow from its cohort is kUnknown, since other queues decide that.
QueueAnswer kueue_quota(const Asked& asked, const ResourceTable& resources,
                        const ClusterQueue& queue);

}  // namespace trainer::fit
