#include "local/node/container_state.hh"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

namespace trainer::node {

namespace {

using kube::Json;

// kubelet starts a container that has ended once as soon as it notices that, within a second.
constexpr std::chrono::seconds kNoticed{1};
constexpr std::chrono::seconds kFirstPause{10};
constexpr std::chrono::seconds kLongestPause{300};
constexpr std::chrono::minutes kSteady{10};
constexpr int kMaxDoublings = 5;
constexpr int kSignalled = 128;  // added to the number of a signal
constexpr int kNotStarted = 128;

}  // namespace

void ContainerState::run(Moment now) {
  phase = Phase::kRunning;
  reason.clear();
  message.clear();
  started_at = now.time;
  began_ = now.steady;
  count_start();
}

void ContainerState::end(int wait_status, std::string last_message, Moment now) {
  phase = Phase::kEnded;
  signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  exit_code = signal != 0 ? kSignalled + signal : WEXITSTATUS(wait_status);
  reason = exit_code == 0 ? "Completed" : "Error";
  message = std::move(last_message);
  finished_at = now.time;
  ended_ = now.steady;
}

void ContainerState::fail_to_start(std::string why, Moment now) {
  phase = Phase::kEnded;
  signal = 0;
  exit_code = kNotStarted;
  reason = "StartError";
  message = std::move(why);
  started_at = finished_at = now.time;
  began_ = ended_ = now.steady;
  count_start();
}

// A container that waits keeps the number of restarts that it had when it ended; kubelet does the
// same. Otherwise a client that follows its log would take the log of the last run for that of the
// next.
void ContainerState::count_start() {
  if (start_at) ++restarts;
  start_at.reset();
}

void ContainerState::wait_for_restart() {
  if (ended_ - began_ >= kSteady) pauses_ = 0;
  const auto pause =
      pauses_ == 0
          ? kNoticed
          : std::min(kFirstPause * (1 << std::min(pauses_ - 1, kMaxDoublings)), kLongestPause);
  ++pauses_;
  last_state = state();
  phase = Phase::kWaiting;
  message = fmt::format("back-off {}s restarting failed container={}", pause.count(), config->name);
  reason = "CrashLoopBackOff";
  start_at = ended_ + pause;
}

Json ContainerState::state() const {
  if (phase == Phase::kRunning)
    return Json::object({{"running", Json::object({{"startedAt", started_at.to_string()}})}});
  Json detail = Json::object({{"reason", reason}});
  if (!message.empty()) detail.set("message", message);
  if (phase == Phase::kWaiting) return Json::object({{"waiting", std::move(detail)}});
  detail.set("exitCode", exit_code);
  if (signal != 0) detail.set("signal", signal);
  detail.set("startedAt", started_at.to_string());
  detail.set("finishedAt", finished_at.to_string());
  return Json::object({{"terminated", std::move(detail)}});
}

Json ContainerState::status(std::string_view pod_uid) const {
  const bool is_running = phase == Phase::kRunning;
  Json value = Json::object({{"name", config->name}, {"image", config->image}, {"imageID", ""}});
  value.set("restartCount", restarts);
  value.set("ready", is_running);
  value.set("started", is_running);
  value.set("state", state());
  value.set("lastState", last_state.is_null() ? Json::object() : last_state);
  if (phase != Phase::kWaiting)
    value.set("containerID", fmt::format("trainer://{}/{}/{}", pod_uid, config->name, restarts));
  return value;
}

bool restarts_after(std::string_view restart_policy, const ContainerState& container,
                    bool is_init) {
  if (restart_policy == "Never") return false;
  return container.has_failed() || (restart_policy == "Always" && !is_init);
}

}  // namespace trainer::node
