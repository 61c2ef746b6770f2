// These are the values of metrics' labels for a TrainJob's status: words from fixed lists, whatever
// the status holds. Pure.
#pragma once

#include <span>
#include <string_view>

#include "api/trainjob.hh"

namespace trainer {

inline constexpr std::string_view kOtherMeasure = "Other";

// status.phase; "Pending" for a job that has none yet.
std::string_view phase_of(const TrainJobStatus& status);
// status.reason of a job that neither runs nor has ended; else "".
std::string_view waiting_reason(const TrainJobStatus& status);
// The reason of the condition Failed; "" of a job that has not failed.
std::string_view failure_reason(const TrainJobStatus& status);
// All that failure_reason() can be, but "".
std::span<const std::string_view> failure_reasons();

}  // namespace trainer
