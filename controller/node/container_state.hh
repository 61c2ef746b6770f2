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
  kube::Json last_state;               // of the start before
  std::optional<kube::Time> start_at;  // when it starts again

  bool has_failed() const { return phase == Phase::kEnded && exit_code != 0; }

  void run(kube::Time now);
  // By what waitpid() answered, or with the reason that it never ran.
  void end(int wait_status, std::string last_message, kube::Time now);
  void fail_to_start(std::string why, kube::Time now);
  // CrashLoopBackOff as kubelet's: none but a second after the first end, then 10 s, doubled up to
  // 5 minutes, begun again after 10 minutes of running. Its end becomes last_state.
  void wait_for_restart();

  // As core/v1 ContainerStatus.
  kube::Json status(std::string_view pod_uid) const;

 private:
  kube::Json state() const;
  void count_start();
  int pauses_ = 0;
};

// Whether an ended container starts again. Init containers that have succeeded do not.
bool restarts_after(std::string_view restart_policy, const ContainerState& container, bool is_init);

}  // namespace trainer::node
