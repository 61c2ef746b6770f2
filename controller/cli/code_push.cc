#include "controller/cli/code_push.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/cli/code_change.hh"
#include "kube/client/pod_exec.hh"
#include "kube/client/task_group.hh"
#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/draft.hh"
#include "runtimes/plugins/code/watch_script.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

constexpr std::size_t kAtATime = 32;  // each pod has a connection of its own

bool is_watched_container(const Json& container) {
  const Json::Array& words = container.get_array("command");
  return std::ranges::any_of(words, [](const Json& word) {
    return word.is_string() && word.as_string().find(pipeline::kRoundVariable) != std::string::npos;
  });
}

// Returns the member of `state` of the container, such as "running"; "" before it has one.
std::string_view state_of(const Json& pod, std::string_view container) {
  for (const Json& status : pod.get("status").get_array("containerStatuses"))
    if (status.get_string("name") == container) {
      const Json::Object& state = status.get_object("state");
      return state.empty() ? std::string_view() : std::string_view(state.begin()->first);
    }
  return {};
}

Task<Result<void>> run_script(kube::ApiClient& client, PushTarget target, std::string_view script,
                              std::string input) {
  kube::PodCommand command;
  command.pod = target.pod;
  command.container = target.container;
  command.words = {"sh", "-c", std::string(script), target.directory, std::to_string(input.size())};
  command.input = std::move(input);
  const std::string title = "pod " + target.pod.name;
  const auto end = co_await kube::run_in_pod(client, std::move(command));
  if (!end) co_return tl::unexpected(end.error().at(title));
  if (end->exit_code == 0) co_return Result<void>();
  std::string said = end->output.substr(0, 300);
  while (said.ends_with('\n')) said.pop_back();
  co_return kube::fail(ErrorCode::kInternal, "{}: {}", title,
                       said.empty() ? fmt::format("exit code {}", end->exit_code) : said);
}

Task<void> run_and_note(kube::ApiClient& client, PushTarget target, std::string_view script,
                        std::string input, Result<void>& first) {
  auto done = co_await run_script(client, std::move(target), script, std::move(input));
  if (!done && first) first = std::move(done);
}

Task<Result<void>> run_in_all(kube::asio::io_context& io, kube::ApiClient& client,
                              const std::vector<PushTarget>& targets, std::string_view script,
                              const std::string& input) {
  Result<void> first;
  const auto on_error = [&first](std::string_view task, std::string_view what) {
    if (first) first = kube::fail(ErrorCode::kInternal, "{}: {}", task, what);
  };
  for (std::size_t at = 0; at < targets.size() && first; at += kAtATime) {
    kube::TaskGroup tasks(io.get_executor(), on_error);
    for (std::size_t i = at; i < std::min(at + kAtATime, targets.size()); ++i)
      tasks.spawn("pod " + targets[i].pod.name,
                  run_and_note(client, targets[i], script, input, first));
    co_await tasks.join();
  }
  co_return first;
}

}  // namespace

PushTargets push_targets(const std::vector<Json>& pods) {
  PushTargets targets;
  for (const Json& pod : pods) {
    const auto meta = kube::ObjectMeta::of(pod);
    const Json& spec = pod.get("spec");
    if (meta.deletion_timestamp) continue;
    const Json::Array& containers = spec.get_array("containers");
    const auto container = std::ranges::find_if(
        containers, [](const Json& each) { return each.get_string("name") == pipeline::kNode; });
    if (container == containers.end()) continue;
    if (!is_watched_container(*container)) {
      targets.obstacle = "its processes cannot begin again in their pods";
      continue;
    }
    const std::string_view state = state_of(pod, pipeline::kNode);
    // Other containers of the pod may go on.
    const bool is_command_over =
        state == "terminated" && spec.get_string("restartPolicy") == "Never";
    if (kube::is_pod_over(pod) || is_command_over) {
      targets.obstacle = fmt::format("pod {} has ended", meta.name);
      continue;
    }
    if (spec.get_string("nodeName").empty()) continue;
    if (state == "running")
      targets.running.push_back({meta.key(), std::string(pipeline::kNode),
                                 std::string(container->get_string("workingDir"))});
    else
      targets.is_starting = true;
  }
  return targets;
}

Task<Result<void>> push_code(kube::asio::io_context& io, kube::ApiClient& client,
                             std::vector<PushTarget> targets, std::string packed,
                             std::string script) {
  auto stopped = co_await run_in_all(io, client, targets, stop_script(), packed);
  if (!stopped) co_return stopped;
  co_return co_await run_in_all(io, client, targets, begin_script(), script);
}

}  // namespace trainer
