// Metrics need these facts about a job, which are the same for all kinds. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer {

// These are the steps of a job until it runs, as bits: its JobSet exists, its first pod exists, it
// runs. The time of each is measured.
enum class JobStep : std::uint8_t { kJobSet = 1, kFirstPod = 2, kRunning = 4 };

// The restarts of a job so far: those that count towards its limit, those that do not, such as
// after disruptions, and those of processes in their pods, as far as ranks report them.
struct JobRestarts {
  std::int32_t failures = 0;
  std::int32_t disruptions = 0;
  std::int32_t processes = 0;
};

// The time of a job by its use, in seconds.
struct JobTimes {
  std::int64_t productive = 0;
  std::int64_t queued = 0;
  std::int64_t starting = 0;
  std::int64_t recomputed = 0;
  std::int64_t stalled = 0;
  friend bool operator==(const JobTimes&, const JobTimes&) = default;
};

// These facts are what one job's stored status says, and which of its objects exist.
struct JobFacts {
  std::string_view ns;
  std::string_view runtime;
  std::string_view phase;
  // The reason why it neither runs nor has ended; "" for one that does. Bounded.
  std::string_view waiting;
  std::string_view failure;     // the reason why it has failed; "" for one that has not. Bounded
  bool has_stragglers = false;  // it runs, and some of its ranks are slow
  kube::Time created;
  std::uint8_t steps = 0;  // the bits of JobStep that it has reached
  // In the record's first facts: it has run before, so that no time until it runs is measured.
  bool has_run = false;
  // nullopt says that the number is not known now. Restarts before the record's first facts are not
  // counted.
  std::optional<JobRestarts> restarts;
  std::optional<JobTimes> times;  // nullopt if its ranks do not report

  JobFacts() = default;
  JobFacts(const kube::ObjectMeta& meta, std::string_view phase_)
      : ns(meta.ns), phase(phase_), created(meta.creation_timestamp.value_or(kube::Time())) {
    reach(JobStep::kRunning, phase == "Running");
  }

  void reach(JobStep step, bool is_reached) {
    if (is_reached) steps |= static_cast<std::uint8_t>(step);
  }
};

}  // namespace trainer
