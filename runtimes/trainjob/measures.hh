// These are the values of metrics' labels for a TrainJob's status: words from fixed lists, whatever
// the status holds. Pure.
#pragma once

#include <span>
#include <string_view>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "runtimes/lifecycle/facts.hh"

namespace trainer {

// status.phase; "Pending" for a job that has none yet.
std::string_view phase_of(const TrainJobStatus& status);
// status.reason of a job that neither runs nor has ended; else "".
std::string_view waiting_reason(const TrainJobStatus& status);
// Returns the reason of the condition Failed; "" if the job has not failed.
std::string_view failure_reason(const TrainJobStatus& status);
// All that failure_reason() can be, but "".
std::span<const std::string_view> failure_reasons();

// Returns the facts of the stored status. `jobset` is the job's, nullptr if it is not known now.
JobFacts facts_of(const TrainJob& job, const JobSet* jobset);
// Its status is all that is known of a job that cannot be read. The result refers to `object`.
JobFacts facts_of_unreadable(const kube::Json& object);

}  // namespace trainer
