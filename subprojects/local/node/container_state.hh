// This is the state of a container of a pod, and its future by the pod's restart policy. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "local/node/pod_config.hh"

namespace trainer::node {

// This is the time for reports, and the one for durations: the latter is not set back or forward,
// and does not run while the machine sleeps.
struct Moment {
  using Steady = std::chrono::steady_clock::time_point;
  kube::Time time;
  Steady steady{};
};

struct ContainerState {
  enum class Phase { kWaiting, kRunning, kEnded };

  const ContainerConfig* config = nullptr;
  Phase phase = Phase::kWaiting;
  std::string reason = "PodInitializing";  // the reason while it waits, and of its end
  std::string message;
  int exit_code = 0;
  int signal = 0;
  kube::Time started_at;
  kube::Time finished_at;
  std::int64_t restarts = 0;
  kube::Json last_state;                   // the state of the start before
  std::optional<Moment::Steady> start_at;  // it starts again at this time

  bool has_failed() const { return phase == Phase::kEnded && exit_code != 0; }

  void run(Moment now);
  // Ends it by the result of waitpid(), or with the reason why it never ran.
  void end(int wait_status, std::string last_message, Moment now);
  void fail_to_start(std::string why, Moment now);
  // The wait is kubelet's CrashLoopBackOff: only a second after the first end, then 10 s, doubled
  // up to 5 minutes, begun again after 10 minutes of running. Its end becomes last_state.
  void wait_for_restart();

  // Returns a core/v1 ContainerStatus.
  kube::Json status(std::string_view pod_uid) const;

 private:
  kube::Json state() const;
  void count_start();
  int pauses_ = 0;
  Moment::Steady began_{};
  Moment::Steady ended_{};
};

// Returns whether an ended container starts again. Init containers that have succeeded do not.
bool restarts_after(std::string_view restart_policy, const ContainerState& container, bool is_init);

}  // namespace trainer::node
