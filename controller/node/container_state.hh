// How a container of a pod is, and what becomes of it by the pod's restart policy. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controller/node/pod_config.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"

namespace trainer::node {

// The time for what is reported, and the one for durations: it is not set back or forward, and does
// not run while the machine sleeps.
struct Moment {
  using Steady = std::chrono::steady_clock::time_point;
  kube::Time time;
  Steady steady{};
};

struct ContainerState {
  enum class Phase { kWaiting, kRunning, kEnded };

  const ContainerConfig* config = nullptr;
  Phase phase = Phase::kWaiting;
  std::string reason = "PodInitializing";  // while it waits, and of its end
  std::string message;
  int exit_code = 0;
  int signal = 0;
  kube::Time started_at;
  kube::Time finished_at;
  std::int64_t restarts = 0;
  kube::Json last_state;                   // of the start before
  std::optional<Moment::Steady> start_at;  // when it starts again

  bool has_failed() const { return phase == Phase::kEnded && exit_code != 0; }

  void run(Moment now);
  // By what waitpid() answered, or with the reason that it never ran.
  void end(int wait_status, std::string last_message, Moment now);
  void fail_to_start(std::string why, Moment now);
  // CrashLoopBackOff as kubelet's: none but a second after the first end, then 10 s, doubled up to
  // 5 minutes, begun again after 10 minutes of running. Its end becomes last_state.
  void wait_for_restart();

  // As core/v1 ContainerStatus.
  kube::Json status(std::string_view pod_uid) const;

 private:
  kube::Json state() const;
  void count_start();
  int pauses_ = 0;
  Moment::Steady began_{};
  Moment::Steady ended_{};
};

// Whether an ended container starts again. Init containers that have succeeded do not.
bool restarts_after(std::string_view restart_policy, const ContainerState& container, bool is_init);

}  // namespace trainer::node
