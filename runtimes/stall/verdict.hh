// The rules that say whether a job stalls, and because of which rank. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/stall/limits.hh"
#include "runtimes/stall/stacks.hh"

namespace trainer::stall {

using Seconds = std::chrono::duration<double>;

enum class Phase { kUnknown, kStarting, kRunning, kStalling, kStalled, kEnded };
enum class Rule {
  kNone,
  kEnded,          // it has ended, and others wait
  kStopped,        // a signal or a debugger stopped it
  kSilent,         // its heartbeats stopped when the job did
  kNeverReported,  // the others wait for it since the start
  kBehind,         // it has begun the fewest collectives
  kNotWaiting,     // most wait in a collective, and it does not
  kApart,          // most are at one line, and it is at another
  kSamePlace,      // all are at one line: no suspect
  kUndecided,      // no suspect
};

// The lists of a verdict are cut to these; a count beside each says how many there are.
inline constexpr std::size_t kMaxSuspects = 16;
inline constexpr std::size_t kMaxGroups = 16;
inline constexpr std::size_t kMaxListed = 64;  // ranks of a group, and missing ones

// The facts of one rank at one time. The texts belong to the caller.
struct RankReport {
  std::string_view pod, node;
  Seconds age{0};    // the time since its last heartbeat
  Seconds idle{0};   // the time since its last step, batch or collective
  Seconds quiet{0};  // the time since its CPU, its I/O or its line last moved
  Seconds gap{0};    // the longest time between two of its steps
  std::int64_t steps = -1;
  std::int64_t batches = -1;
  std::int64_t seq = -1;
  std::int64_t sent = -1;    // the number of its last heartbeat
  double own = -1;           // seconds of a step without waiting for others; -1 if unknown
  bool has_reported = true;  // false if only its agent speaks of it
  bool has_ended = false;
  bool is_stopped = false;  // its agent says so
  bool has_stack = false;   // taken in this stall
  bool is_awaited = false;  // it may still answer the request for stacks
  Wait wait = Wait::kUnknown;
  std::string_view line;           // its innermost user line
  std::string_view helper, where;  // those of Summary
  std::string_view signal_line;    // by its agent
};

// `where` is "" for the main thread, else "thread NAME", "worker process PID", "by signal" or
// "last seen".
struct Suspect {
  std::int32_t rank = 0;
  std::string pod, node;  // empty if it never reported
  Rule rule = Rule::kNone;
  std::string line;
  std::string where;
  bool is_busy = false;
  friend bool operator==(const Suspect&, const Suspect&) = default;
};

// Ranks whose innermost user line is the same.
struct Group {
  std::string line;
  std::int32_t count = 0;
  std::vector<std::int32_t> ranks;  // the first kMaxListed, sorted
  friend bool operator==(const Group&, const Group&) = default;
};

struct Verdict {
  Phase phase = Phase::kUnknown;
  Rule rule = Rule::kNone;        // kNone unless the phase is kStalled
  std::vector<Suspect> suspects;  // the first kMaxSuspects, sorted by rank
  std::int32_t suspect_count = 0;
  std::int32_t waiting = 0;   // ranks that wait in a collective, in a stall
  std::vector<Group> groups;  // in a stall: the first kMaxGroups, the largest first
  std::int32_t group_count = 0;
  std::int32_t world = 0;
  std::vector<std::int32_t> missing;  // not heard yet: the first kMaxListed, sorted
  std::int32_t missing_count = 0;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// `watched` is how long this attempt of the job has been watched. Guarantees: no rank is named in
// doubt; the cost is linear in the ranks, but for sorting those of a stall.
Verdict decide(const std::map<std::int32_t, RankReport>& ranks, std::int32_t world, Seconds watched,
               const Limits& limits);

std::string_view name_of(Rule rule);  // "Stopped", ...

}  // namespace trainer::stall
