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

Task<void> run_latency(Context& context, const Probe& probe, std::vector<double>& milliseconds) {
  auto& cluster = context.cluster;
  co_await cluster.make_namespace(probe.ns);
  std::map<std::string, Steady::time_point> seen;
  Tally made(always);
  made.on_put = [&seen](const Json& child) {
    seen.emplace(std::string(child.find_path({"metadata", "name"})->as_string()), Steady::now());
  };
  auto watching = cluster.watch(probe.child, probe.ns, made);
  co_await cluster.wait_until([&] { return made.is_synced(); }, std::chrono::seconds(10),
                              "the first list");
  for (int i = 0; i < context.latency_samples; ++i) {
    const std::string name = "j" + std::to_string(i);
    Json object = probe.object(probe.ns, name);
    co_await cluster.must(cluster.client().create(probe.resource, std::move(object)));
    const auto answered = Steady::now();
    auto last = answered;  // a child may be seen before the answer is read
    for (const std::string& child : probe.children) {
      co_await cluster.wait_until([&] { return seen.count(name + child) > 0; },
                                  std::chrono::seconds(30), name + child);
      last = std::max(last, seen[name + child]);
    }
    milliseconds.push_back(std::chrono::duration<double, std::milli>(last - answered).count());
    co_await cluster.sleep(kube::Milliseconds(1'000));
  }
  watching->cancel();
  co_await watching->join();
  co_await cluster.remove_namespace(probe.ns);
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

Task<void> make_suspended(Cluster& cluster, const SuspendedObjects& objects) {
  co_await cluster.make_namespace(objects.ns);
  Tally done([](const Json& job) { return !job.get_object("status").empty(); });
  auto watching = cluster.watch(objects.resource, objects.ns, done);
  std::function<Task<void>(int)> post = [&cluster, &objects](int i) -> Task<void> {
    return [](Cluster& c, const SuspendedObjects& all, int number) -> Task<void> {
      Json object = all.object(all.ns, "j" + std::to_string(number));
      co_await c.must(c.client().create(all.resource, std::move(object)));
    }(cluster, objects, i);
  };
  co_await cluster.for_each(objects.count, 32, post);
  co_await cluster.wait_until(
      [&] { return done.count() == static_cast<std::size_t>(objects.count); },
      std::chrono::seconds(3'600), "a status of every suspended job");
  watching->cancel();
  co_await watching->join();
}

Task<void> count_statuses(Context& context, std::string plural, double& writes) {
  const std::string metrics = co_await read_metrics(context);
  writes = requests(metrics, "PATCH", plural + "/status");
}

// Until no status has been written for two seconds.
Task<void> await_statuses(Context& context, std::string plural) {
  double before = -1;
  double writes = 0;
  while (before != writes) {
    before = writes;
    co_await context.cluster.sleep(kube::Milliseconds(2'000));
    co_await count_statuses(context, plural, writes);
  }
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

std::vector<Figure> latency(Context& context, const Probe& probe) {
  std::vector<double> milliseconds;
  context.cluster.run(run_latency(context, probe, milliseconds));
  return {{probe.what + ", p50", percentile(milliseconds, 0.5), "ms", probe.p50},
          {probe.what + ", p95", percentile(milliseconds, 0.95), "ms", probe.p95}};
}

std::vector<Figure> latency(Context& context) {
  const auto object = [](const std::string& ns, const std::string& name) {
    return trainjob(ns, name, 2, false);
  };
  return latency(context, {"POST answered until the Job exists",
                           "bench-latency",
                           kTrainJobs,
                           object,
                           kube::kJobs,
                           {"-node-0"},
                           20,
                           40});
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

std::vector<Figure> suspended(Context& context, std::unique_ptr<ControllerProcess>& controller,
                              const SuspendedObjects& objects) {
  context.cluster.run(make_suspended(context.cluster, objects));
  context.cluster.run(await_statuses(context, objects.resource.plural));
  const double running = controller->usage().rss_mb;
  controller.reset();
  controller = context.start_controller(objects.flags);
  const auto begin = Steady::now();
  context.cluster.run(await_ready(context));
  const double ready = seconds_since(begin);
  context.cluster.run(context.cluster.sleep(kube::Milliseconds(5'000)));
  const double restarted = controller->usage().rss_mb;
  double writes = 0;
  context.cluster.run(count_statuses(context, objects.resource.plural, writes));
  context.cluster.run(context.cluster.remove_namespace(objects.ns));
  const std::string size =
      std::to_string(objects.count) + " suspended " + objects.resource.kind + "s: ";
  const double share = objects.count / 50'000.0;
  return {{size + "RSS", std::max(running, restarted), "MB",
           std::max(objects.mb_of_50_000 * share, 40.0)},
          {size + "ready after a restart", ready, "s", 20},
          {size + "statuses written after a restart", writes, "", 0.5}};
}

std::vector<Figure> suspended(Context& context, std::unique_ptr<ControllerProcess>& controller) {
  const auto object = [](const std::string& ns, const std::string& name) {
    return trainjob(ns, name, 2, true);
  };
  return suspended(context, controller,
                   {"bench-suspended", kTrainJobs, object, context.suspended, 200});
}

}  // namespace trainer::bench
