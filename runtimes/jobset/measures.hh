// These are values of metric labels for a JobSet's status, each from a fixed list, the same as for
// TrainJobs (trainjob/measures.hh). Pure.
#pragma once

#include <span>
#include <string_view>

#include "api/jobset.hh"
#include "runtimes/lifecycle/facts.hh"

namespace trainer::jobset {

// Returns Complete, Failed, Queued, Suspended, Running, Restarting; else Pending. A JobSet runs
// while each of its Jobs is ready or has succeeded, except those that may start later.
std::string_view phase_of(const JobSet& jobset);
// Returns why a JobSet in this phase neither runs nor has ended; "" for one in another phase.
std::string_view waiting_reason(const JobSetStatus& status, std::string_view phase);
// Returns the reason; "" if the JobSet has not failed.
std::string_view failure_reason(const JobSetStatus& status);
// All values of failure_reason() but "".
std::span<const std::string_view> failure_reasons();

// Returns the facts of the stored status.
JobFacts facts_of(const JobSet& jobset);

}  // namespace trainer::jobset
