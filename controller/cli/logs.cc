#include <fmt/format.h>

#include <ostream>

#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/log_follow.hh"
#include "controller/cli/log_merge.hh"
#include "controller/cli/log_print.hh"
#include "controller/config/values.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Result;
using kube::Task;

LogQuery first_query(const LogsOptions& options) {
  LogQuery query;
  if (options.tail >= 0) query.tail = options.tail;
  if (const auto since = parse_duration(options.since)) {
    // The server counts in whole seconds and refuses 0.
    query.since_seconds = std::max<std::int64_t>(1, since->count() / 1'000);
  }
  return query;
}

Task<Result<std::vector<LogPod>>> list_pods(kube::ApiClient& client, LogsHook hook,
                                            kube::ObjectKey job, std::optional<std::int32_t> node) {
  std::vector<LogPod> pods;
  std::function<void(std::string_view)> on_item = [&](std::string_view text) {
    const auto object = kube::parse_json(text);
    auto pod = object ? LogPod::read(*object, hook) : std::nullopt;
    if (pod && is_chosen(*pod, node)) pods.push_back(std::move(*pod));
  };
  const auto listed = co_await client.list(
      kube::kPods, job.ns, label_query(hook.pod_label, job.name), std::move(on_item));
  if (!listed) co_return tl::unexpected(listed.error());
  co_return pods;
}

Task<Result<int>> print_all(kube::ApiClient& client, const LogsOptions& options, Target target,
                            kube::ObjectKey key, Console& console) {
  const LogsHook& hook = *target.kind->logs;
  const auto object = co_await client.get(target.resource(), key);
  if (!object) co_return tl::unexpected(object.error());
  auto pods = co_await list_pods(client, hook, key, options.node);
  if (!pods) co_return tl::unexpected(pods.error());
  if (pods->empty()) {
    const auto state = hook.read_state(*object, console.program);
    const bool is_known = state && !state->phase.empty();
    console.err << fmt::format(
        "{} {}: there are no pods{}{}\n", target.resource().kind, key.to_string(),
        options.node ? fmt::format(" of node {}", *options.node) : "",
        is_known ? plain_text(fmt::format(", {}: {}", state->phase, state->message)) : "");
    // The pods may be deleted, but the status still has the last lines of the first that failed.
    if (state && !state->last_output.empty())
      console.logs << text_for_output(state->last_output, console) << '\n';
    co_return kExitRefused;
  }
  int code = kExitDone;
  std::function<void(std::string_view)> on_error = [&console, &code](std::string_view what) {
    console.err << plain_text(what) << '\n';
    code = kExitRefused;  // output is missing
  };
  const auto merged = co_await merge_logs(client, std::move(*pods), first_query(options),
                                          log_printer(options, console), std::move(on_error));
  if (!merged) co_return tl::unexpected(merged.error());
  co_return code;
}

Task<Result<int>> follow_all(LogFollower& follower, std::string title, Console& console) {
  const auto last = co_await follower.run();
  if (!last) co_return tl::unexpected(last.error());
  if (!*last) {
    console.err << title << ": deleted\n";
    co_return kExitRefused;
  }
  co_return (*last)->is_failed ? kExitRefused : kExitDone;
}

}  // namespace

int run_logs(const LogsOptions& options, const Registry& registry, Console& console) {
  const auto opened = open_target(
      registry, "logs", options.target,
      [](const KindRegistration& kind) { return kind.logs.has_value(); }, options.cluster, console);
  if (!opened) return opened.error();
  const auto& [target, key, cluster] = *opened;
  kube::ApiClient& client = cluster->client();
  Result<int> code = kExitDone;
  if (options.is_followed) {
    LogFollower::Options follow;
    follow.resource = target.resource();
    follow.hook = *target.kind->logs;
    follow.job = key;
    follow.node = options.node;
    follow.first = first_query(options);
    follow.ends_when_suspended = options.ends_when_suspended;
    follow.print = log_printer(options, console);
    follow.report = [&console](std::string_view what) {
      console.err << "-- " << plain_text(what) << std::endl;
    };
    const std::string title = follow.title();
    LogFollower follower(cluster->io(), client, std::move(follow));
    code = cluster->run(follow_all(follower, title, console));
  } else {
    code = cluster->run(print_all(client, options, target, key, console));
  }
  return code ? *code : report_cluster_error(code.error(), target.resource(), key, console);
}

}  // namespace trainer
