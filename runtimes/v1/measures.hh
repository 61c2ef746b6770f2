// Values of metric labels for a V1 job's status, each from a fixed list, the same as for TrainJobs
// (trainjob/measures.hh). Pure.
#pragma once

#include <span>
#include <string_view>

#include "api/v1job.hh"
#include "runtimes/lifecycle/facts.hh"

namespace trainer::v1 {

// Complete, Failed, Suspended, Restarting, Running; else Pending.
std::string_view phase_of(const JobStatus& status);
// Returns whether the job has run before, whatever it does now.
bool has_run(const JobStatus& status);
// Returns why a job in this phase neither runs nor has ended; "" for a job in another phase.
std::string_view waiting_reason(const JobStatus& status, std::string_view phase);
// Returns the reason; "" if the job has not failed.
std::string_view failure_reason(const JobStatus& status);
// All values of failure_reason() but "".
std::span<const std::string_view> failure_reasons();

// Returns the facts of the stored status.
JobFacts facts_of(const V1Job& job);

}  // namespace trainer::v1
