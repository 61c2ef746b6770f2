// A pod has the columns READY, STATUS and RESTARTS.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"
#include "kube/server/tables.hh"
#include "local/kinds/cells.hh"

namespace trainer::local {
namespace {

using kube::Json;
using kube::Time;

struct Summary {
  std::string state;  // STATUS
  std::size_t ready = 0;
  std::int64_t restarts = 0;
  // The time when a container ended before it was restarted; times compare as texts.
  std::string last_restart;

  void count_restarts(const Json& container) {
    restarts += container.get_int("restartCount");
    const auto end = container.get_path({"lastState", "terminated"}).get_string("finishedAt");
    if (end > last_restart) last_restart = end;
  }
};

// Returns the state of a container that has ended.
std::string ended(const Json& terminated) {
  if (const auto reason = terminated.get_string("reason"); !reason.empty())
    return std::string(reason);
  if (const auto signal = terminated.get_int("signal"); signal != 0)
    return fmt::format("Signal:{}", signal);
  return fmt::format("ExitCode:{}", terminated.get_int("exitCode"));
}

const Json* find_named(const Json& pod, std::string_view list, std::string_view name) {
  for (const Json& container : pod.get("spec").get_array(list))
    if (container.get_string("name") == name) return &container;
  return nullptr;
}

// Returns whether an init container runs as long as the pod (restartPolicy Always).
bool runs_beside(const Json& pod, const Json& status) {
  const Json* container = find_named(pod, "initContainers", status.get_string("name"));
  return container != nullptr && container->get_string("restartPolicy") == "Always";
}

// Returns the reason why an init container waits or has failed; nullopt if the next one may start.
std::optional<std::string> unfinished(const Json& status, bool is_sidecar) {
  const Json& state = status.get("state");
  const Json& terminated = state.get("terminated");
  if (terminated.is_object() && terminated.get_int("exitCode") == 0) return std::nullopt;
  if (is_sidecar && status.get_bool("started")) return std::nullopt;
  if (terminated.is_object()) return ended(terminated);
  const std::string_view reason = state.get("waiting").get_string("reason");
  return std::string(reason == "PodInitializing" ? "" : reason);
}

// Returns whether an init container is not done yet, which is the pod's state then.
bool read_init_containers(const Json& pod, Summary& all, Summary& sidecars) {
  const auto& statuses = pod.get("status").get_array("initContainerStatuses");
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const Json& status = statuses[i];
    const bool is_sidecar = runs_beside(pod, status);
    all.count_restarts(status);
    if (is_sidecar) sidecars.count_restarts(status);
    if (const auto why = unfinished(status, is_sidecar)) {
      const std::size_t count = pod.get("spec").get_array("initContainers").size();
      all.state = "Init:" + (why->empty() ? fmt::format("{}/{}", i, count) : *why);
      return true;
    }
    if (is_sidecar && status.get_bool("ready") &&
        !status.get("state").get("terminated").is_object())
      ++sidecars.ready;
  }
  return false;
}

// The first container with a state to show decides.
void read_containers(const Json& pod, Summary& summary) {
  bool is_running = false;
  const auto& statuses = pod.get("status").get_array("containerStatuses");
  for (auto status = statuses.rbegin(); status != statuses.rend(); ++status) {
    summary.count_restarts(*status);
    const Json& state = status->get("state");
    const Json& terminated = state.get("terminated");
    const std::string_view waits_for = state.get("waiting").get_string("reason");
    if (!waits_for.empty()) {
      summary.state = waits_for;
    } else if (terminated.is_object()) {
      summary.state = ended(terminated);
    } else if (status->get_bool("ready") && state.get("running").is_object()) {
      is_running = true;
      ++summary.ready;
    }
  }
  if (summary.state == "Completed" && is_running)
    summary.state = kube::has_condition(pod, "Ready") ? "Running" : "NotReady";
}

Summary summary_of(const Json& pod) {
  const Json& status = pod.get("status");
  Summary all, main;
  main.state = text_or(status, "reason", status.get_string("phase"));
  if (kube::condition_of(pod, "PodScheduled").get_string("reason") == "SchedulingGated")
    main.state = "SchedulingGated";
  const bool is_initializing = read_init_containers(pod, all, main);
  if (is_initializing) main.state = all.state;
  if (!is_initializing || kube::has_condition(pod, "Initialized")) {
    read_containers(pod, main);
  } else {
    main.restarts = all.restarts;
    main.last_restart = all.last_restart;
  }
  if (pod.get("metadata").find("deletionTimestamp") != nullptr) {
    if (status.get_string("reason") == "NodeLost") {
      main.state = "Unknown";
    } else if (!kube::is_pod_over(pod)) {
      main.state = "Terminating";
    }
  }
  return main;
}

std::size_t container_count(const Json& pod) {
  const Json& spec = pod.get("spec");
  const auto& init = spec.get_array("initContainers");
  return spec.get_array("containers").size() +
         static_cast<std::size_t>(
             std::count_if(init.begin(), init.end(), [](const Json& container) {
               return container.get_string("restartPolicy") == "Always";
             }));
}

std::string readiness_gates(const Json& pod) {
  const auto& gates = pod.get("spec").get_array("readinessGates");
  if (gates.empty()) return "<none>";
  const auto open = std::count_if(gates.begin(), gates.end(), [&pod](const Json& gate) {
    return kube::has_condition(pod, gate.get_string("conditionType"));
  });
  return fmt::format("{}/{}", open, gates.size());
}

}  // namespace

Json pod_cells(const Json& pod, Time now) {
  const Summary summary = summary_of(pod);
  std::string restarts = std::to_string(summary.restarts);
  if (summary.restarts != 0 && !summary.last_restart.empty())
    restarts += fmt::format(" ({} ago)", kube::server::human_age(summary.last_restart, now));
  const Json& status = pod.get("status");
  const auto& addresses = status.get_array("podIPs");
  return Json::array({name_of(pod), fmt::format("{}/{}", summary.ready, container_count(pod)),
                      summary.state, restarts, age_of(pod, now),
                      text_or(addresses.empty() ? Json::null() : addresses.front(), "ip", "<none>"),
                      text_or(pod.get("spec"), "nodeName", "<none>"),
                      text_or(status, "nominatedNodeName", "<none>"), readiness_gates(pod)});
}

}  // namespace trainer::local
