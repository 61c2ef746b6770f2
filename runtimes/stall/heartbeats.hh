// The messages of docs/reporter-protocol.md: each member is checked and bounded here, before
// anything of a message is kept. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "runtimes/stall/stacks.hh"

namespace trainer::stall {

inline constexpr std::int32_t kMaxRanks = 16'384;

// The verified token says who sends.
struct Sender {
  std::string pod;
  std::string uid;
  std::string node;
  std::int32_t restarts = 0;  // the restarts of the JobSet before it made the pod
};

// A process of a pod. A later process of the same pid has another `born`.
struct ProcessId {
  std::int64_t pid = -1;
  std::string born;
  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

// The restarts of a job: by the JobSet, and by torchrun. A higher one replaces a lower one.
using Attempt = std::pair<std::int64_t, std::int64_t>;

// A rank says this of itself. Numbers that are unknown are -1.
struct RankMessage {
  std::int32_t rank = 0;
  std::int32_t world = 1;
  std::int64_t steps = -1;
  std::int64_t batches = -1;
  std::int64_t seq = -1;
  double idle = -1;
  double gap = -1;
  double own = -1;
  double cpu = -1;
  std::int64_t io = -1;
  std::int64_t saved = -1;   // the steps at which a checkpoint was last written
  std::int64_t loaded = -1;  // the steps at which a checkpoint was last loaded
  std::string top, leaf;
  std::optional<Stacks> dump;
};

// The process of torchrun says this of a rank that it started.
struct WorkerMessage {
  std::int32_t rank = 0;
  ProcessId process;
  std::string state;  // the letter of /proc/PID/stat, or "gone"
  std::string line;   // the innermost user line of the text that a signal made it write
};

struct Message {
  ProcessId process;
  Attempt attempt;
  std::int64_t sent = 0;
  bool is_last = false;                // `bye`
  std::optional<RankMessage> rank;     // set if a rank sends it
  std::vector<WorkerMessage> workers;  // set if an agent sends it
};

// Errors (kInvalid) name the member that is missing, of another type, or out of bounds. Texts and
// lists that are too long are cut. The cost is linear in what is read, whatever else there is.
kube::Result<Message> read_message(const kube::Json& json);

}  // namespace trainer::stall
