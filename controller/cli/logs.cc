#include <fmt/format.h>

#include <ostream>

#include "api/api.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/log_follow.hh"
#include "controller/cli/log_merge.hh"
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

PrintLine printer(const LogsOptions& options, std::ostream& out) {
  return [&out, with_time = options.has_timestamps, is_live = options.is_followed](
             const LogPod& pod, std::string_view container, const LogLine& line) {
    out << pod.prefix(container) << ' ';
    if (with_time && !line.timestamp.empty()) out << line.timestamp << ' ';
    out << line.text << '\n';
    if (is_live) out << std::flush;
  };
}

Task<Result<std::vector<LogPod>>> list_pods(kube::ApiClient& client, kube::ObjectKey job,
                                            std::optional<std::int32_t> node) {
  std::vector<LogPod> pods;
  std::function<void(std::string_view)> on_item = [&](std::string_view text) {
    const auto object = kube::parse_json(text);
    auto pod = object ? LogPod::read(*object) : std::nullopt;
    if (pod && is_chosen(*pod, node)) pods.push_back(std::move(*pod));
  };
  const auto listed = co_await client.list(
      kube::kPods, job.ns, "labelSelector=jobset.sigs.k8s.io%2Fjobset-name%3D" + job.name,
      std::move(on_item));
  if (!listed) co_return tl::unexpected(listed.error());
  co_return pods;
}

// A job's pods may be gone, but its status still has the last lines of the first pod that failed.
void print_first_failure(const TrainJob& job, Console& console) {
  const auto& failure = job.status.firstFailure;
  if (!failure || failure->message.empty()) return;
  console.out << fmt::format("[{}-{}] last lines of {}, from the TrainJob's status:\n{}\n",
                             failure->job, failure->index.value_or(0), failure->pod,
                             failure->message);
}

Task<Result<int>> print_all(kube::ApiClient& client, const LogsOptions& options,
                            kube::ObjectKey key, Console& console) {
  const auto object = co_await client.get(kTrainJobs, key);
  if (!object) co_return tl::unexpected(object.error());
  const auto job = read_trainjob(*object);
  auto pods = co_await list_pods(client, key, options.node);
  if (!pods) co_return tl::unexpected(pods.error());
  if (pods->empty()) {
    const std::string state =
        job ? fmt::format("{}: {}", job->status.phase, job->status.message) : std::string();
    console.err << fmt::format("TrainJob {}: there are no pods{}{}\n", key.to_string(),
                               options.node ? fmt::format(" of node {}", *options.node) : "",
                               state.size() > 2 ? ", " + state : "");
    if (job) print_first_failure(*job, console);
    co_return kExitRefused;
  }
  std::function<void(std::string_view)> on_error = [&console](std::string_view what) {
    console.err << what << '\n';
  };
  const auto merged = co_await merge_logs(client, std::move(*pods), first_query(options),
                                          printer(options, console.out), std::move(on_error));
  if (!merged) co_return tl::unexpected(merged.error());
  co_return kExitDone;
}

Task<Result<int>> follow_all(LogFollower& follower, kube::ObjectKey key, Console& console) {
  const auto last = co_await follower.run();
  if (!last) co_return tl::unexpected(last.error());
  if (!*last) {
    console.err << fmt::format("TrainJob {}: deleted\n", key.to_string());
    co_return kExitRefused;
  }
  const bool is_failed = kube::is_condition_true((*last)->status.conditions, "Failed");
  co_return is_failed ? kExitRefused : kExitDone;
}

}  // namespace

int run_logs(const LogsOptions& options, Console& console) {
  auto cluster = Cluster::connect(options.cluster);
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return kExitNoCluster;
  }
  kube::ApiClient& client = (*cluster)->client();
  const kube::ObjectKey key{(*cluster)->ns(), options.job};
  Result<int> code = kExitDone;
  if (options.is_followed) {
    LogFollower::Options follow;
    follow.job = key;
    follow.node = options.node;
    follow.first = first_query(options);
    follow.print = printer(options, console.out);
    follow.report = [&console](std::string_view what) {
      console.err << "-- " << what << std::endl;
    };
    LogFollower follower((*cluster)->io(), client, std::move(follow));
    code = (*cluster)->run(follow_all(follower, key, console));
  } else {
    code = (*cluster)->run(print_all(client, options, key, console));
  }
  return code ? *code : report_cluster_error(code.error(), "TrainJob " + key.to_string(), console);
}

}  // namespace trainer
