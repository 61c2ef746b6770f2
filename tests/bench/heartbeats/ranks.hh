// All ranks of a job, with the agents of their pods, send heartbeats as docs/reporter-protocol.md
// says: each over a connection of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "kube/client/byte_stream.hh"
#include "kube/client/clock.hh"
#include "kube/client/task_group.hh"
#include "tests/bench/heartbeats/job.hh"

namespace trainer::bench {

using Steady = std::chrono::steady_clock;

// This is what the senders have seen since the begin of a measurement.
struct Seen {
  std::vector<double> seconds;  // from the time when a heartbeat was due to its answer
  std::size_t refused = 0;      // answered by another status than 200
  std::size_t failed = 0;       // not answered
  std::int64_t period = 0;      // the last one that was answered
};

// Concurrency: the thread of `io`.
class Ranks {
 public:
  Ranks(kube::asio::io_context& io, int world, unsigned short port);

  // Sends until stop().
  kube::Task<void> run();
  // All ranks wait for one from now on.
  void hang();
  kube::Task<void> stop();

  Seen take_seen() { return std::exchange(seen_, Seen()); }
  std::optional<Steady::time_point> hangs_since() const { return hangs_since_; }

 private:
  struct Due {
    Steady::time_point at;
    std::size_t reporter = 0;
    friend bool operator<(const Due& a, const Due& b) { return a.at > b.at; }
  };
  struct Answer {
    int status = 0;
    std::int64_t period = 0;
    std::string dump;
  };

  void add(int rank, int pod, double phase);
  Training training() const;
  kube::Task<void> beat(Due due);
  kube::Task<std::optional<Answer>> send(std::size_t reporter, std::string dump);
  kube::Task<std::string> exchange(std::string request);

  kube::SystemClock clock_;
  const kube::asio::ip::tcp::endpoint server_;
  std::unique_ptr<kube::ClientTls> tls_;
  std::vector<Reporter> reporters_;
  std::vector<std::string> tokens_;  // by pod
  std::vector<std::int64_t> periods_;
  std::vector<double> phases_;
  std::priority_queue<Due> due_;
  int world_;
  Steady::time_point begun_;
  std::optional<Steady::time_point> hangs_since_;
  Seen seen_;
  int running_ = 0;
  bool is_over_ = false;
  kube::TaskGroup tasks_;
};

}  // namespace trainer::bench
