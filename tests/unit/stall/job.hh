// A job of processes that report as docs/reporter-protocol.md says, over a network that loses,
// delays and repeats messages if a test wants that.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/json.hh"
#include "runtimes/stall/watch.hh"

namespace trainer::stall::test {

std::string_view name_of(Phase phase);  // "Stalled", ...
using stall::name_of;

using Frames = std::vector<std::string>;

// Stacks of a rank, the innermost frame first.
extern const Frames kAllReduce;  // at train.py:80, in a collective
extern const Frames kBackward;   // at train.py:70, in the backward pass
extern const Frames kBarrier;    // at train.py:90, in a collective
extern const Frames kItem;       // at train.py:81, where a GPU is awaited
extern const Frames kLoad;       // at data.py:5
extern const Frames kSave;       // at save.py:7, in torch.save()
extern const Frames kLoader;     // at train.py:60, where a worker process is awaited
extern const Frames kJoin;       // at train.py:65, where a thread is awaited

struct Process {
  std::int32_t rank = 0;
  std::int64_t pid = 100;
  std::string born = "b1";
  Sender sender;
  std::int64_t sent = 0;
  std::int64_t steps = 0;
  std::int64_t batches = 0;
  std::int64_t seq = -1;
  SteadyTime moved_at;  // its last step
  double gap = -1;
  double cpu = 0;
  double cpu_rate = 0;  // in a second
  double io = 0;
  double io_rate = 0;
  Frames frames;
  std::vector<std::pair<std::string, Frames>> threads;         // beside the main thread
  std::vector<std::pair<std::int64_t, std::string>> children;  // pid, text of faulthandler
  std::string agent_text;                                      // the agent's signal brings it
  std::string state = "S";                                     // its agent sees it
  bool is_heard = true;                                        // it sends heartbeats
  bool says_bye = false;                                       // with its next heartbeat
  bool never_dumps = false;
  std::string answered;  // the last id of stacks
};

struct Network {
  double loss = 0;
  double repeat = 0;
  int delay = 0;  // seconds at most
};

class Job {
 public:
  explicit Job(std::int32_t ranks, Limits limits = {}, std::int32_t ranks_per_pod = 1);

  // Lets time pass. Ranks that train make a step in each second.
  void run(int seconds);
  // Each rank goes on to train, or stops now.
  void train() { is_training_ = true; }
  void stop(const Frames& others);  // all ranks begin a collective, and wait in it
  // One rank is not in the collective of the others: it has begun one less.
  void leave(std::int32_t rank, const Frames& frames);
  void without_sequence();
  void add_agents() { has_agents_ = true; }
  void restart_controller() { watch.emplace(limits, now); }
  void set_network(Network network, std::uint32_t seed);

  kube::Json message_of(const Process& process, const std::string& dump = {}) const;
  kube::Json agent_of(const std::string& pod, bool has_text) const;
  std::vector<std::int32_t> suspects() const;

  Limits limits;
  SteadyTime now;
  std::optional<Watch> watch;
  std::vector<Process> ranks;
  std::string attempt, restart;
  std::int32_t world = 0;
  int changes = 0;                // the verdict changed so often
  std::vector<Verdict> verdicts;  // one for each change

 private:
  struct Sent {
    kube::Json message;
    Sender sender;
    std::int32_t rank = -1;
  };

  void second();
  void send(Sent sent);
  void deliver(const Sent& sent);
  void send_rank(Process& process, const std::string& dump = {});
  bool is_due(double phase) const;
  bool draw(double chance);

  bool is_training_ = true;
  bool has_agents_ = false;
  bool has_sequence_ = true;
  std::int64_t agents_sent_ = 0;
  std::string agent_dump_;
  int clock_ = 0;
  Network network_;
  std::mt19937 random_;
  std::multimap<int, Sent> under_way_;
};

}  // namespace trainer::stall::test
