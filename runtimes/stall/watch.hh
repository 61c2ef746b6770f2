// All that is kept of one job to decide whether it stalls. Pure: callers give the time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "runtimes/stall/heartbeats.hh"
#include "runtimes/stall/restart_loop.hh"
#include "runtimes/stall/stragglers.hh"
#include "runtimes/stall/verdict.hh"

namespace trainer::stall {

using SteadyTime = std::chrono::steady_clock::time_point;

inline constexpr std::size_t kMaxWholeStacks = 256;  // ranks whose stacks are kept whole

// This says how far an attempt has come. An attempt that has loaded a checkpoint goes on from it.
struct Position {
  std::int64_t steps = 0;   // the highest count of its ranks
  std::int64_t saved = -1;  // the count at its last checkpoint; -1 if it has written none
  bool has_loaded = false;
  std::optional<SteadyTime> stepped_at;  // its last step or batch; nullopt before the first
};

struct Answer {
  std::chrono::seconds period{0};
  std::string dump;  // the id of the wanted stacks, or empty
};

// Guarantees: a message that is refused, ignored or repeated changes nothing of a rank; memory is
// bounded whatever is sent: about 13 MB at 10,000 ranks with long texts, and kMaxWholeStacks times
// kMaxStacks more in a stall; a decision takes 7 ms. Concurrency: one thread. Errors: kInvalid
// names the member.
class Watch {
 public:
  Watch(Limits limits, SteadyTime now);

  kube::Result<Answer> take(const kube::Json& message, const Sender& sender, SteadyTime now);
  // Decides again; it is called once in a period. Returns true if the verdict or the stragglers
  // have changed.
  bool decide(SteadyTime now);

  const Verdict& verdict() const { return verdict_; }
  const Stragglers& stragglers() const { return stragglers_; }
  // The last step, batch or collective of any rank in this attempt; nullopt before the first.
  std::optional<SteadyTime> progress_at() const;
  SteadyTime heard_at() const { return heard_at_; }  // the begin of the watch before any message
  // An estimate of what this holds.
  std::size_t bytes() const;
  // Returns the ranks with all their threads and children, and whether they wait in a collective.
  kube::Json stacks() const;
  const Position& position() const { return position_; }
  // Returns the last position of the attempt before this one.
  const Position& previous_position() const { return previous_position_; }
  Attempt attempt() const { return attempt_; }
  // The restarts of the JobSet before this attempt.
  std::int32_t restarts() const { return restarts_; }
  // The ranks have begun again so often with another number of them, without a restart that
  // torchrun or the JobSet counts.
  std::int32_t resizes() const { return resizes_; }
  const RestartLoop& loop() const { return loop_; }

 private:
  // The word of the agent that started a rank, about one process.
  struct Word {
    ProcessId process;
    std::size_t agent = 0;  // a digest of the agent's pod and process
    std::int64_t sent = -1;
    std::string state, line;
    SteadyTime at;
  };
  struct Rank {
    Sender sender;
    ProcessId process;
    std::array<std::size_t, 4> replaced{};  // digests of processes that are believed no more
    bool has_reported = false;
    bool has_ended = false;
    std::int32_t world = 0;
    std::int64_t sent = -1;
    std::int64_t steps = -1;
    std::int64_t batches = -1;
    std::int64_t seq = -1;
    std::int64_t last_seq = -1;  // the last one that was known
    double gap = 0;
    double own = -1;  // the last one that was known
    SteadyTime first_at, heard_at, progress_at, active_at;
    // The values by which activity is measured.
    SteadyTime sample_at;
    double sample_cpu = -1;
    std::int64_t sample_io = -1;
    std::size_t sample_top = 0;  // a digest
    std::string top, leaf;
    std::optional<Summary> summary;  // its stacks were taken in this stall
    std::optional<Word> word;
  };
  struct Whole {
    Stacks stacks;
    bool is_waiting = false;
  };
  // Ids of one stall's requests for stacks.
  struct Request {
    std::string id, previous;
    SteadyTime since, issued;
  };
  using Ranks = std::map<std::int32_t, Rank>;

  static std::size_t digest_of(const Sender& sender, const ProcessId& process);
  // `world` is the number of ranks that begin, if those that end have another one.
  void restart(Attempt attempt, SteadyTime now, std::optional<std::int32_t> world = std::nullopt);
  void note_end(Attempt next, std::optional<std::int32_t> world);
  bool has_ended(const Message& message, const Sender& sender, SteadyTime now) const;
  bool is_resized(const Message& message, const Sender& sender) const;
  void take_rank(Message& message, const Sender& sender, SteadyTime now);
  void take_workers(const Message& message, const Sender& sender, SteadyTime now);
  bool admit(Rank& rank, const Message& message, const Sender& sender, SteadyTime now) const;
  bool take_marks(Rank& rank, const RankMessage& message, SteadyTime now);
  void take_activity(Rank& rank, const RankMessage& message, SteadyTime now) const;
  void take_dump(std::int32_t number, Rank& rank, Stacks stacks);
  void drop_dump(std::int32_t number, Rank& rank);
  void renew_request(SteadyTime now);
  void forget_stall();
  std::int32_t world() const;
  std::map<std::int32_t, RankReport> reports(std::int32_t world, SteadyTime now) const;
  RankReport report_of(const Rank& rank, SteadyTime now) const;

  static std::size_t bytes_of(const Rank& rank);

  const Limits own_limits_;  // those of the job, with few ranks
  Limits limits_;            // those for its ranks
  Attempt attempt_{0, 0};
  RestartLoop loop_;
  std::vector<std::size_t> ended_;  // digests of the processes before the last restart
  Attempt ended_attempt_{-1, 0};    // the highest one of these processes
  std::int32_t resizes_ = 0;
  std::int32_t restarts_ = 0;
  SteadyTime begun_at_;  // the begin of the attempt, or of the watch
  SteadyTime heard_at_;
  SteadyTime rank_heard_at_;
  SteadyTime awake_at_;  // no time before it counts as idle: the job as a whole may have slept
  Position position_;
  Position previous_position_;
  std::optional<SteadyTime> progress_at_;
  Ranks ranks_;
  std::map<std::int32_t, Whole> whole_;
  std::optional<Request> request_;
  std::size_t bytes_ = 0;  // those of `ranks_` and `whole_`
  Verdict verdict_;
  Stragglers stragglers_;
};

}  // namespace trainer::stall
