// Heartbeats of all jobs are kept, and a verdict is made of them from time to time
// (docs/reporter-protocol.md).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controller/status/heartbeat_board.hh"
#include "controller/status/token_verifier.hh"
#include "kube/client/clock.hh"
#include "kube/client/http_server.hh"
#include "kube/client/notifier.hh"
#include "kube/client/task_group.hh"
#include "kube/manager/log.hh"
#include "runtimes/stall/watch.hh"

namespace trainer {

// Guarantees: what the processes of one job send changes nothing of another job. Everything is
// bounded: the jobs and their memory, of one namespace and of all, and the messages of one pod.
// Where the room of all is taken, a namespace still gets an equal part of it, so that twice the
// bound is never exceeded. A job that sends nothing for half an hour is forgotten. Nothing runs
// while there is no job.
// Concurrency: one thread, of `io`.
class HeartbeatStore {
 public:
  static constexpr std::size_t kMaxJobs = 4'000;
  static constexpr std::size_t kMaxJobsOfNamespace = 1'000;
  static constexpr std::size_t kMaxBytes = 512U << 20;
  static constexpr std::size_t kMaxBytesOfNamespace = 128U << 20;
  static constexpr int kMaxMessages = 120;  // a pod may send so many in kWindow
  static constexpr std::chrono::seconds kWindow{10};

  // `clock` and `log` outlive this.
  HeartbeatStore(kube::asio::io_context& io, kube::Clock& clock,
                 std::shared_ptr<HeartbeatBoard> board, const kube::Log& log);
  HeartbeatStore(const HeartbeatStore&) = delete;
  HeartbeatStore& operator=(const HeartbeatStore&) = delete;

  // Returns the answer to a heartbeat of a pod that has been verified.
  kube::ServerResponse take(const kube::ObjectKey& trainjob, const VerifiedPod& pod,
                            std::string_view body);
  // Ends the verdicts.
  kube::Task<void> stop();

 private:
  using Steady = std::chrono::steady_clock::time_point;
  struct Messages {
    Steady since;
    int count = 0;
  };
  // A change of these is shown at once.
  struct Shown {
    stall::Attempt attempt;
    std::int32_t resizes = 0;
    bool has_stepped = false;
    friend bool operator==(const Shown&, const Shown&) = default;
  };
  // This is what is kept of one TrainJob.
  struct Job {
    Job(kube::ObjectKey trainjob, stall::Limits limits, Steady now)
        : key(std::move(trainjob)),
          pause(std::min(limits.period, std::chrono::seconds(5))),
          watch(limits, now),
          decided_at(now) {}
    kube::ObjectKey key;
    const std::chrono::seconds pause;  // between two verdicts
    stall::Watch watch;
    Steady decided_at;
    Shown shown;
    std::size_t bytes = 0;
    std::unordered_map<std::string, Messages> messages;  // by the pod's uid
    std::shared_ptr<const SavedStacks> stacks;           // made for this stall
    std::vector<std::int32_t> stacks_about;              // the suspects that it had then
    std::optional<Steady> stacks_at;
  };
  // These are the sums of one namespace.
  struct Share {
    std::size_t jobs = 0;
    std::size_t bytes = 0;
  };

  Job* find_or_make(const kube::ObjectKey& trainjob, const VerifiedPod& pod, Steady now);
  static bool is_too_often(Job& job, const std::string& pod_uid, Steady now);
  void count_bytes(Job& job);
  kube::Task<void> decide_all();
  void decide(const std::string& uid, Job& job, Steady now);
  std::optional<kube::Time> time_of(std::optional<Steady> at, Steady now) const;
  HeartbeatBoard::Facts facts_of(const Job& job, Steady now) const;
  bool keep_stacks(Job& job, Steady now);
  void forget_silent(Steady now);

  kube::Clock& clock_;
  const std::shared_ptr<HeartbeatBoard> board_;
  const kube::Log& log_;
  std::unordered_map<std::string, std::unique_ptr<Job>> jobs_;  // by the TrainJob's uid
  std::map<std::string, Share, std::less<>> shares_;            // by namespace
  Share total_;
  kube::Notifier pause_;
  std::uint64_t last_stacks_ = 0;  // a number
  int stacks_left_ = 0;            // sets that this tick may still make
  bool is_deciding_ = false;
  bool is_stopped_ = false;
  kube::TaskGroup tasks_;
};

}  // namespace trainer
