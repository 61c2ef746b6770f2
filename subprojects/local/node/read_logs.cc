// GET .../pods/NAME/log is answered by kubelet's rules (pkg/kubelet/kubelet_pods.go,
// validateContainerLogStatus).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "local/node/agent.hh"
#include "local/node/log_reader.hh"
#include "local/node/log_writer.hh"

namespace trainer {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

namespace {

constexpr kube::Milliseconds kPause{50};

Result<std::string> container_of(const Json& pod, const kube::server::LogQuery& query) {
  std::vector<std::string> names;
  for (const char* list : {"containers", "initContainers"})
    for (const Json& container : pod.get("spec").get_array(list))
      names.emplace_back(container.get_string("name"));
  std::string wanted = query.container;
  if (wanted.empty())
    wanted = pod.get_path({"metadata", "annotations"})
                 .get_string("kubectl.kubernetes.io/default-container");
  if (wanted.empty() && names.size() == 1) wanted = names.front();
  if (wanted.empty())
    return kube::fail(ErrorCode::kBadRequest,
                      "a container name must be specified for pod {}, choose one of: [{}]",
                      query.pod.name, fmt::join(names, " "));
  if (std::find(names.begin(), names.end(), wanted) == names.end())
    return kube::fail(ErrorCode::kBadRequest, "container {} is not valid for pod {}", wanted,
                      query.pod.name);
  return wanted;
}

std::string_view waiting_reason(const Json& pod, std::string_view container) {
  for (const char* list : {"containerStatuses", "initContainerStatuses"})
    for (const Json& status : pod.get("status").get_array(list))
      if (status.get_string("name") == container)
        return status.get_path({"state", "waiting"}).get_string("reason", "ContainerCreating");
  return "ContainerCreating";
}

}  // namespace

Task<Result<void>> NodeAgent::read_logs(kube::server::LogQuery query, WriteLog write) {
  const Runner runner = find_runner(query.pod);
  if (!runner) co_return kube::fail(ErrorCode::kNotFound, "pods \"{}\" not found", query.pod.name);
  const auto container = container_of(runner->pod(), query);
  if (!container) co_return tl::unexpected(container.error());
  node::LogSelection selection;
  selection.has_timestamps = query.has_timestamps;
  selection.tail_lines = query.tail_lines;
  selection.limit_bytes = query.limit_bytes;
  selection.since = query.since;
  // The end of a container that restarts is the previous one already, but its file is renamed only
  // by the next start.
  const bool is_previous_file = query.is_previous && !runner->is_restarting(*container);
  node::LogReader reader(node::log_file(runner->directory(), *container, is_previous_file),
                         selection);
  if (!reader.exists() && query.is_previous)
    co_return kube::fail(ErrorCode::kBadRequest,
                         "previous terminated container \"{}\" in pod \"{}\" not found", *container,
                         query.pod.name);
  if (!reader.exists())
    co_return kube::fail(ErrorCode::kBadRequest,
                         "container \"{}\" in pod \"{}\" is waiting to start: {}", *container,
                         query.pod.name, waiting_reason(runner->pod(), *container));
  bool is_wanted = co_await write(std::string());
  while (is_wanted && !reader.is_full()) {
    // This is asked before reading, so that nothing is missed at the end.
    const bool is_growing = query.is_followed && !query.is_previous && runner->has_processes() &&
                            runner->is_running(*container) && !reader.is_of_earlier_start();
    std::string piece = reader.next();
    if (!piece.empty())
      is_wanted = co_await write(std::move(piece));
    else if (is_growing)
      co_await kube::sleep(node_.client.clock(), kPause);
    else
      break;
  }
  co_return Result<void>();
}

}  // namespace trainer
