#include "controller/cli/log_pod.hh"

#include <fmt/format.h>

#include <tuple>

#include "kube/client/api_client.hh"
#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"

namespace trainer {

using kube::Json;

namespace {

LogContainer read_container(const Json& status) {
  LogContainer container;
  container.name = status.get_string("name");
  container.restarts = static_cast<std::int32_t>(status.get_int("restartCount"));
  const Json* ended = status.find_path({"state", "terminated"});
  const bool is_running = status.find_path({"state", "running"}) != nullptr;
  // A container that waits for its restart still has the log of its last run.
  if (ended == nullptr && !is_running) ended = status.find_path({"lastState", "terminated"});
  container.has_log = is_running || ended != nullptr;
  container.is_ended = ended != nullptr;
  if (ended != nullptr) {
    container.exit_code = ended->get_int("exitCode");
    container.reason = ended->get_string("reason");
  }
  return container;
}

}  // namespace

std::optional<LogPod> LogPod::read(const Json& object, const LogsHook& hook) {
  const auto meta = kube::ObjectMeta::of(object);
  auto place = hook.read_place(meta);
  if (meta.name.empty() || !place) return std::nullopt;
  LogPod pod;
  static_cast<PodPlace&>(pod) = std::move(*place);
  pod.name = meta.name;
  pod.ns = meta.ns;
  pod.uid = meta.uid;
  const Json& status = object.get("status");
  pod.is_over = kube::is_pod_over(object);
  if (meta.deletion_timestamp) {
    constexpr int kUsual = 30;
    pod.ends_within =
        std::chrono::seconds(object.get("metadata").get_int("deletionGracePeriodSeconds", kUsual));
  }
  if (const std::string_view message = status.get_string("message");
      !message.empty() && status.get_string("phase") == "Failed")
    pod.failure = fmt::format("{}: {}", status.get_string("reason", "Failed"), message);
  // Only those init containers count that failed: they explain why nothing else starts.
  for (const Json& item : status.get_array("initContainerStatuses")) {
    LogContainer container = read_container(item);
    if (container.is_ended && container.exit_code.value_or(0) != 0)
      pod.containers.push_back(std::move(container));
  }
  for (const Json& item : status.get_array("containerStatuses"))
    pod.containers.push_back(read_container(item));
  return pod;
}

const LogContainer* LogPod::find(std::string_view container) const {
  for (const LogContainer& item : containers) {
    if (item.name == container) return &item;
  }
  return nullptr;
}

std::string LogPod::prefix(std::string_view container) const {
  std::string text = has_one_job ? fmt::format("[{}-{}", role, index)
                                 : fmt::format("[{}-{}-{}", role, job_index, index);
  if (attempt > 0) text += fmt::format(" #{}", attempt);
  if (containers.size() > 1) text += fmt::format(" {}", container);
  return text + "]";
}

bool operator<(const LogPod& a, const LogPod& b) {
  return std::tie(a.role, a.job_index, a.index, a.attempt, a.name) <
         std::tie(b.role, b.job_index, b.index, b.attempt, b.name);
}

bool is_chosen(const LogPod& pod, const std::optional<std::int32_t>& node) {
  return !node || (pod.is_node && (pod.has_one_job ? pod.index : pod.job_index) == *node);
}

std::string log_path(const LogPod& pod, std::string_view container, const LogQuery& query) {
  // Names of pods and containers have no characters that need escaping in a URL.
  std::string path = kube::api_path(kube::kPods, {pod.ns, pod.name}, "log");
  path += fmt::format("?container={}&timestamps=true", container);
  if (query.is_followed) path += "&follow=true";
  if (query.is_previous) path += "&previous=true";
  if (query.since_time) {
    path += "&sinceTime=" + *query.since_time;
    return path;
  }
  if (query.since_seconds) path += fmt::format("&sinceSeconds={}", *query.since_seconds);
  if (query.tail) path += fmt::format("&tailLines={}", *query.tail);
  return path;
}

}  // namespace trainer
