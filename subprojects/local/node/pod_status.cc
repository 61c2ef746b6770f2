#include "local/node/pod_status.hh"

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/model/meta.hh"

namespace trainer::node {

namespace {

using kube::Condition;
using kube::Json;
using kube::Time;

constexpr int kKilled = 137;  // 128 and SIGKILL

bool is_running(const Json& container) {
  return container.get("state").find("running") != nullptr;
}

bool has_ended(const Json& container) {
  return container.get("state").find("terminated") != nullptr;
}

bool has_succeeded(const Json& container) {
  const Json& end = container.get_path({"state", "terminated"});
  return end.is_object() && end.get_int("exitCode") == 0;
}

template <class Holds>
bool all_of(const Json& report, const char* list, Holds holds) {
  const auto& containers = report.get_array(list);
  return std::all_of(containers.begin(), containers.end(), holds);
}

bool has_begun(const Json& container) {
  return container.get("state").find("waiting") == nullptr || !container.get("lastState").empty();
}

std::string_view phase_of(const Json& report) {
  const auto& containers = report.get_array("containerStatuses");
  if (report.get_bool("isOver"))
    return all_of(report, "containerStatuses", has_succeeded) ? "Succeeded" : "Failed";
  const bool has_one = std::any_of(containers.begin(), containers.end(), has_begun);
  return has_one && all_of(report, "initContainerStatuses", has_succeeded) ? "Running" : "Pending";
}

// Returns whether the pod was ended by its deadline, not before it: a container ended after it, or
// waited for its restart.
bool has_exceeded_deadline(const StatusFacts& facts, const Json& report, Time now) {
  const auto& deadline = facts.deadline;
  if (!report.get_bool("isOver")) return false;
  if (facts.is_late || !deadline || now < *deadline) return facts.is_late;
  const auto is_late = [&deadline](const Json& container) {
    const auto end =
        Time::parse(container.get_path({"state", "terminated"}).get_string("finishedAt"));
    // Reports have whole seconds.
    return end ? *end >= (*deadline + std::chrono::milliseconds(1)).whole_seconds()
               : has_begun(container);
  };
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    for (const Json& container : report.get_array(list))
      if (is_late(container)) return true;
  return false;
}

std::vector<Condition> conditions_of(const Json& pod) {
  std::vector<Condition> conditions;
  for (const Json& condition : pod.get("status").get_array("conditions"))
    conditions.push_back(Condition::read(condition));
  return conditions;
}

void set(std::vector<Condition>& conditions, std::string_view type, bool value,
         std::string_view reason, Time now) {
  Condition condition;
  condition.type = type;
  condition.status = value ? "True" : "False";
  if (!value || reason == "PodCompleted") condition.reason = reason;
  kube::set_condition(conditions, std::move(condition), now);
}

// The names are kubelet's (pkg/kubelet/status/generate.go).
Json conditions_json(const Json& pod, std::string_view phase, bool is_initialized, bool is_ready,
                     Time now) {
  const std::string_view reason = phase == "Succeeded" ? "PodCompleted"
                                  : phase == "Failed"  ? "PodFailed"
                                                       : "ContainersNotReady";
  std::vector<Condition> conditions = conditions_of(pod);
  set(conditions, "Initialized", is_initialized,
      is_initialized ? reason : "ContainersNotInitialized", now);
  set(conditions, "ContainersReady", is_ready, reason, now);
  set(conditions, "Ready", is_ready, reason, now);
  Json list = Json::array();
  for (const Condition& condition : conditions) list.push_back(condition.to_json());
  return list;
}

Json common_status(const Json& pod, std::string_view phase, const StatusFacts& facts, Time now) {
  Json status = Json::object({{"phase", phase}, {"hostIP", facts.host_address}});
  status.set("hostIPs", Json::array({Json::object({{"ip", facts.host_address}})}));
  status.set("podIP", facts.pod_address);
  status.set("podIPs", Json::array({Json::object({{"ip", facts.pod_address}})}));
  const std::string_view since = pod.get("status").get_string("startTime");
  status.set("startTime", since.empty() ? Json(now.to_string()) : Json(since));
  return status;
}

Json waiting_container(const Json& container, std::string_view reason, std::string_view message) {
  Json waiting = Json::object({{"reason", reason}});
  if (!message.empty()) waiting.set("message", message);
  Json status = Json::object({{"name", container.get_string("name")}, {"ready", false}});
  status.set("image", container.get_string("image"));
  status.set("imageID", "");
  status.set("restartCount", 0);
  status.set("started", false);
  status.set("lastState", Json::object());
  status.set("state", Json::object({{"waiting", std::move(waiting)}}));
  return status;
}

}  // namespace

std::optional<std::chrono::seconds> active_deadline_of(const Json& pod) {
  const Json& seconds = pod.get("spec").get("activeDeadlineSeconds");
  if (!seconds.is_int()) return std::nullopt;
  return std::chrono::seconds(seconds.as_int());
}

Json pod_status(const Json& pod, const Json& report, const StatusFacts& facts, Time now) {
  const bool is_late = has_exceeded_deadline(facts, report, now);
  const std::string_view phase = is_late ? "Failed" : phase_of(report);
  Json status = common_status(pod, phase, facts, now);
  if (is_late) status.set("reason", kDeadlineExceeded).set("message", kActiveForTooLong);
  Json containers = report.get("containerStatuses");
  bool is_ready = phase == "Running";
  for (Json& container : containers.as_array()) {
    const auto probed = facts.is_ready.find(container.get_string("name"));
    const bool is_up = is_running(container) && (probed == facts.is_ready.end() || probed->second);
    container.set("ready", is_up);
    is_ready = is_ready && is_up;
  }
  status.set("containerStatuses", std::move(containers));
  if (const Json* init = report.find("initContainerStatuses")) {
    status.set("initContainerStatuses", *init);
    for (Json& container : status["initContainerStatuses"].as_array())
      container.set("ready", has_succeeded(container));
  }
  const bool is_initialized = all_of(report, "initContainerStatuses", has_succeeded);
  status.set("conditions", conditions_json(pod, phase, is_initialized, is_ready, now));
  return status;
}

Json waiting_status(const Json& pod, std::string_view reason, std::string_view message,
                    const StatusFacts& facts, Time now) {
  Json status = common_status(pod, "Pending", facts, now);
  for (const auto& [from, to] : {std::pair("initContainers", "initContainerStatuses"),
                                 std::pair("containers", "containerStatuses")})
    for (const Json& container : pod.get("spec").get_array(from))
      status[to].push_back(waiting_container(container, reason, message));
  const bool is_initialized = pod.get("spec").get_array("initContainers").empty();
  status.set("conditions", conditions_json(pod, "Pending", is_initialized, false, now));
  return status;
}

Json refused_status(const Json& pod, std::string_view reason, std::string_view message,
                    const StatusFacts& facts, Time now) {
  Json status = common_status(pod, "Failed", facts, now);
  status.set("reason", reason);
  status.set("message", message);
  status.set("conditions", conditions_json(pod, "Failed", false, false, now));
  return status;
}

Json report_of_killed(Json report, Time now) {
  report.set("isOver", true);
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    Json* containers = report.find(list);
    if (containers == nullptr) continue;
    for (Json& container : containers->as_array()) {
      if (has_ended(container)) continue;
      Json end = Json::object({{"exitCode", kKilled}, {"reason", "Error"}});
      end.set("message", "the process that held this pod (trainer shim) was killed");
      const std::string_view since =
          container.get_path({"state", "running"}).get_string("startedAt");
      end.set("startedAt", since.empty() ? Json(now.to_string()) : Json(since));
      end.set("finishedAt", now.to_string());
      container.set("state", Json::object({{"terminated", std::move(end)}}));
    }
  }
  return report;
}

std::vector<PodEvent> events_of(const Json& before, const Json& report) {
  const auto state_before = [&before](const char* list, std::size_t i) -> const Json& {
    const auto& statuses = before.get_array(list);
    return i < statuses.size() ? statuses[i].get("state") : Json::null();
  };
  std::vector<PodEvent> events;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    std::size_t i = 0;
    for (const Json& status : report.get_array(list)) {
      const Json& state = status.get("state");
      const std::string name(status.get_string("name"));
      if (state == state_before(list, i++)) continue;
      const Json& end = state.get("terminated");
      const Json& wait = state.get("waiting");
      if (state.find("running") != nullptr)
        events.push_back({"Normal", "Started", "Started container " + name});
      else if (end.get_string("reason") == "StartError")
        events.push_back({"Warning", "Failed", "Error: " + std::string(end.get_string("message"))});
      else if (wait.get_string("reason") == "CrashLoopBackOff")
        events.push_back({"Warning", "BackOff", std::string(wait.get_string("message"))});
    }
  }
  return events;
}

Json status_patch(const Json& pod, const Json& status) {
  Json changed;
  for (const auto& [member, value] : status.as_object())
    if (pod.get("status").get(member) != value) changed.set(member, value);
  if (changed.is_null()) return changed;
  Json metadata = Json::object({{"uid", pod.get("metadata").get_string("uid")}});
  return Json::object({{"metadata", std::move(metadata)}, {"status", std::move(changed)}});
}

}  // namespace trainer::node
