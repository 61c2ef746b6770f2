#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/resources.hh"
#include "tests/bench/scenarios.hh"

namespace trainer::bench {
namespace {

using kube::Json;
using kube::Task;

constexpr const char* kNamespace = "bench-burst";
constexpr int kWidth = 32;
constexpr int kTrainNodes = 2;

bool always(const Json&) {
  return true;
}

// The counters have arrived: one Job of this job's only replicated job is active.
bool is_trainjob_settled(const Json& job) {
  const auto* status = job.find("status");
  if (!status || status->get_string("phase").empty()) return false;
  const auto& jobs = status->get_array("jobsStatus");
  return jobs.size() == 1 && jobs[0].get_int("active") == 1;
}

Task<void> run_burst(Context& context, BurstResult& result) {
  auto& cluster = context.cluster;
  const std::string before = co_await read_metrics(context);
  co_await cluster.make_namespace(kNamespace);
  Tally pods(always);
  Tally jobs(is_trainjob_settled);
  Tally jobsets(always);
  auto watching = std::vector<std::unique_ptr<kube::TaskGroup>>();
  watching.push_back(cluster.watch(kube::kPods, kNamespace, pods));
  watching.push_back(cluster.watch(kTrainJobs, kNamespace, jobs));
  watching.push_back(cluster.watch(kJobSets, kNamespace, jobsets));
  co_await cluster.wait_until([&] { return pods.is_synced() && jobs.is_synced(); },
                              std::chrono::seconds(10), "the first lists");

  const auto begin = Steady::now();
  std::function<Task<void>(int)> post = [&cluster](int i) -> Task<void> {
    return [](Cluster& c, int number) -> Task<void> {
      Json job = trainjob(kNamespace, "j" + std::to_string(number), kTrainNodes, false);
      co_await c.must(c.client().create(kTrainJobs, std::move(job)));
    }(cluster, i);
  };
  co_await cluster.for_each(context.jobs, kWidth, post);
  const auto desired = static_cast<std::size_t>(context.jobs);
  co_await cluster.wait_until([&] { return pods.count() == desired * kTrainNodes; },
                              std::chrono::seconds(600), "all pods");
  result.pods_per_second =
      context.jobs / std::chrono::duration<double>(pods.reached() - begin).count();
  const auto is_quiet = [&] {
    const auto last = std::max(jobs.changed(), jobsets.changed());
    return jobs.count() == desired && seconds_since(last) > 3;
  };
  co_await cluster.wait_until(is_quiet, std::chrono::seconds(600), "settled statuses");
  const auto settled = std::max(jobs.changed(), jobsets.changed());
  result.settled_per_second = context.jobs / std::chrono::duration<double>(settled - begin).count();

  const std::string after = co_await read_metrics(context);
  const auto writes = [&](const char* method, const char* resource) {
    const double total = requests(after, method, resource) - requests(before, method, resource);
    return static_cast<int>(std::lround(total / context.jobs));
  };
  result.trainjob_status_writes = writes("PATCH", "trainjobs/status");
  result.jobset_status_writes = writes("PATCH", "jobsets/status");
  result.events = writes("POST", "events");
  const auto each = [&](const char* name, const std::vector<std::string>& labels) {
    return (metric(after, name, labels) - metric(before, name, labels)) / context.jobs;
  };
  result.requests = each("rest_client_requests_total", {});
  for (const char* loop : {"trainjob_controller", "jobset"}) {
    result.reconciles +=
        each("controller_runtime_reconcile_total", {"controller=\"" + std::string(loop) + "\""});
  }
  const kube::ObjectKey sample{kNamespace, "j0"};
  auto& client = cluster.client();
  result.trainjob = co_await cluster.must(client.get(kTrainJobs, sample));
  result.jobset = co_await cluster.must(client.get(kJobSets, sample));
  result.service = co_await cluster.must(client.get(kube::kServices, sample));
  const kube::ObjectKey job{kNamespace, "j0-node-0"};
  result.job = co_await cluster.must(client.get(kube::kJobs, job));
  const kube::ObjectKey snapshot{kNamespace, "j0-runtime-snapshot"};
  result.snapshot = co_await cluster.must(client.get(kube::kConfigMaps, snapshot));
  for (auto& group : watching) {
    group->cancel();
    co_await group->join();
  }
}

}  // namespace

std::vector<Figure> burst(Context& context, ControllerProcess& controller, BurstResult& result) {
  const Usage before = controller.usage();
  context.cluster.run(run_burst(context, result));
  const Usage after = controller.usage();
  fmt::print(stderr, "bench: {} TrainJobs have settled and are removed\n", context.jobs);
  context.cluster.run(context.cluster.remove_namespace(kNamespace));
  const std::string jobs = std::to_string(context.jobs) + " TrainJobs at once: ";
  return {
      {jobs + "until all pods exist", result.pods_per_second, "jobs/s"},
      {jobs + "until every status has settled", result.settled_per_second, "jobs/s"},
      {jobs + "API requests a job", result.requests, ""},
      {jobs + "reconciles a job", result.reconciles, ""},
      {jobs + "CPU a job", (after.cpu_seconds - before.cpu_seconds) * 1000 / context.jobs, "ms", 2},
      {jobs + "peak RSS", after.peak_mb, "MB", 40}};
}

}  // namespace trainer::bench
