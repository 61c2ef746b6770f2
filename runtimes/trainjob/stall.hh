// The verdict on a job's ranks becomes a part of its status (docs/users/hangs.md). Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/trainjob.hh"
#include "kube/model/time.hh"
#include "runtimes/stall/verdict.hh"
#include "runtimes/stall/watch.hh"

namespace trainer {

// Compressed stacks of a stall (runtimes/stall/saved_stacks.hh). Later ones have a higher number.
struct SavedStacks {
  std::uint64_t number = 0;
  std::string bytes;
};

// The ranks' heartbeats say this of a job now.
struct HeartbeatFacts {
  std::optional<StallStatus> stall;       // without summary; nullopt if a rank makes steps
  std::int32_t restarts = 0;              // the restarts of the JobSet before this attempt
  std::optional<kube::Time> stepped_at;   // the last step or batch in this attempt
  stall::Position position;               // the position of this attempt
  stall::Position previous;               // the last one of the attempt before
  std::int32_t process_restarts = 0;      // in the pods of this attempt, at the rank with the most
  std::int32_t resizes = 0;               // those that this process has seen (Watch::resizes)
  std::int32_t restarts_at_one_step = 0;  // the last of them in a row that came no further
  std::int64_t last_step = 0;             // the step of the last one of these
  std::optional<std::vector<StragglerStatus>> stragglers;  // nullopt if they are not known
  std::shared_ptr<const SavedStacks> stacks;               // those of this stall; may be null
};

// Returns "rank 5 (pod P, node N)", without what is empty.
std::string rank_text(std::int32_t rank, const std::string& pod, const std::string& node);

// Returns a stalled verdict in the bounds of a status, without `summary`. `since` is the time of
// the last step.
StallStatus stall_of(const stall::Verdict& verdict, std::optional<kube::Time> since);

// Returns "stalled 12m (rank 5)". The time is rounded down, more so the longer it is, since each
// change of it is a write.
std::string summary_of(const StallStatus& stall, kube::Time now);

// Returns after which time that text changes.
std::chrono::seconds summary_lasts(const StallStatus& stall, kube::Time now);

}  // namespace trainer
