#include <algorithm>
#include <map>
#include <numeric>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "tests/bench/scenarios.hh"

namespace trainer::bench {
namespace {

using kube::Json;
using kube::Task;

bool always(const Json&) {
  return true;
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  return values.empty() ? 0 : values[at];
}

Task<void> run_latency(Context& context, std::vector<double>& milliseconds) {
  auto& cluster = context.cluster;
  const std::string ns = "bench-latency";
  co_await cluster.make_namespace(ns);
  std::map<std::string, Steady::time_point> seen;
  Tally jobs(always);
  jobs.on_put = [&seen](const Json& job) {
    seen.emplace(std::string(job.find_path({"metadata", "name"})->as_string()), Steady::now());
  };
  auto watching = cluster.watch(kube::kJobs, ns, jobs);
  co_await cluster.wait_until([&] { return jobs.is_synced(); }, std::chrono::seconds(10),
                              "the first list");
  for (int i = 0; i < context.latency_samples; ++i) {
    const std::string name = "j" + std::to_string(i);
    Json job = trainjob(ns, name, 2, false);
    co_await cluster.must(cluster.client().create(kTrainJobs, std::move(job)));
    const auto answered = Steady::now();
    co_await cluster.wait_until([&] { return seen.count(name + "-node-0") > 0; },
                                std::chrono::seconds(30), "Job of " + name);
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(seen[name + "-node-0"] - answered).count());
    co_await cluster.sleep(kube::Milliseconds(1'000));
  }
  watching->cancel();
  co_await watching->join();
  co_await cluster.remove_namespace(ns);
}

Task<void> run_large(Context& context, double& seconds) {
  auto& cluster = context.cluster;
  const std::string ns = "bench-large";
  co_await cluster.make_namespace(ns);
  Tally pods(always);
  auto watching = cluster.watch(kube::kPods, ns, pods);
  co_await cluster.wait_until([&] { return pods.is_synced(); }, std::chrono::seconds(10),
                              "the first list");
  const auto begin = Steady::now();
  co_await cluster.must(cluster.client().create(
      kJobSets, jobset(ns, "large", context.large_jobs, context.large_pods)));
  const auto desired = static_cast<std::size_t>(context.large_jobs * context.large_pods);
  co_await cluster.wait_until([&] { return pods.count() == desired; }, std::chrono::seconds(900),
                              "all pods");
  seconds = seconds_since(begin);
  co_await cluster.sleep(kube::Milliseconds(3'000));
  watching->cancel();
  co_await watching->join();
}

Task<void> make_suspended(Context& context) {
  auto& cluster = context.cluster;
  co_await cluster.make_namespace("bench-suspended");
  Tally done([](const Json& job) { return !job.get_object("status").empty(); });
  auto watching = cluster.watch(kTrainJobs, "bench-suspended", done);
  std::function<Task<void>(int)> post = [&cluster](int i) -> Task<void> {
    return [](Cluster& c, int number) -> Task<void> {
      Json job = trainjob("bench-suspended", "j" + std::to_string(number), 2, true);
      co_await c.must(c.client().create(kTrainJobs, std::move(job)));
    }(cluster, i);
  };
  co_await cluster.for_each(context.suspended, 32, post);
  co_await cluster.wait_until(
      [&] { return done.count() == static_cast<std::size_t>(context.suspended); },
      std::chrono::seconds(3'600), "a status of every suspended job");
  watching->cancel();
  co_await watching->join();
}

Task<void> await_ready(Context& context) {
  const auto end = Steady::now() + std::chrono::seconds(120);
  while ((co_await get_local(context.cluster, std::string("http://") + kHealthAddress, "/readyz"))
             .empty()) {
    if (Steady::now() > end) throw std::runtime_error("the controller does not become ready");
    co_await context.cluster.sleep(kube::Milliseconds(20));
  }
}

}  // namespace

std::vector<Figure> idle(Context& context, ControllerProcess& controller) {
  context.cluster.run(await_ready(context));
  context.cluster.run(context.cluster.sleep(kube::Milliseconds(3'000)));
  return {{"idle: RSS", controller.usage().rss_mb, "MB", 16}};
}

std::vector<Figure> latency(Context& context) {
  std::vector<double> milliseconds;
  context.cluster.run(run_latency(context, milliseconds));
  return {{"POST answered until the Job exists, p50", percentile(milliseconds, 0.5), "ms", 20},
          {"POST answered until the Job exists, p95", percentile(milliseconds, 0.95), "ms", 40}};
}

std::vector<Figure> large_jobset(Context& context, ControllerProcess& controller) {
  const Usage before = controller.usage();
  controller.reset_peak();
  double seconds = 0;
  context.cluster.run(run_large(context, seconds));
  const Usage after = controller.usage();
  context.cluster.run(context.cluster.remove_namespace("bench-large"));
  const std::string size = std::to_string(context.large_jobs * context.large_pods) + " pods in " +
                           std::to_string(context.large_jobs) + " Jobs: ";
  // The goals are for 10,000 pods.
  const double share = context.large_jobs * context.large_pods / 10'000.0;
  return {{size + "until all exist", seconds, "s"},
          {size + "CPU", after.cpu_seconds - before.cpu_seconds, "s", std::max(3 * share, 0.3)},
          {size + "peak RSS", after.peak_mb, "MB", 40}};
}

std::vector<Figure> suspended(Context& context, std::unique_ptr<ControllerProcess>& controller) {
  context.cluster.run(make_suspended(context));
  const double running = controller->usage().rss_mb;
  controller.reset();
  controller = context.start_controller();
  const auto begin = Steady::now();
  context.cluster.run(await_ready(context));
  const double ready = seconds_since(begin);
  context.cluster.run(context.cluster.sleep(kube::Milliseconds(5'000)));
  const double restarted = controller->usage().rss_mb;
  context.cluster.run(context.cluster.remove_namespace("bench-suspended"));
  const std::string size = std::to_string(context.suspended) + " suspended TrainJobs: ";
  const double share = context.suspended / 50'000.0;
  return {{size + "RSS", std::max(running, restarted), "MB", std::max(200 * share, 40.0)},
          {size + "ready after a restart", ready, "s", 20}};
}

}  // namespace trainer::bench
