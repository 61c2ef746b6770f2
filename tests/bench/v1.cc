// PyTorchJobs `kubeflow.org/v1`: many at once and a large one, each beside a plain driver that
// sends the same requests, and suspended ones.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/v1/plan.hh"
#include "tests/bench/scenarios.hh"

namespace trainer::bench {
namespace {

using kube::Json;
using kube::Task;

constexpr const char* kV1Namespace = "bench-v1";
constexpr const char* kLimitNamespace = "bench-v1-limit";
constexpr int kV1Width = 32;
// This is the best of the Training Operator 1.9.3 on two cores, with its limits raised.
constexpr double kUpstreamsBest = 35.4;

const v1::Framework& framework() {
  return *v1::find_framework("PyTorchJob");
}

std::string name_of(int number) {
  return "j" + std::to_string(number);
}

Json pytorchjob(const std::string& ns, const std::string& name, int workers,
                Json run_policy = Json::object()) {
  Json job = *kube::parse_json(R"({
    "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {
      "Master": {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch", "image": "localhost/none:1"}]}}},
      "Worker": {"template": {"spec": {"containers": [{"name": "pytorch", "image": "localhost/none:1"}]}}}}}})");
  job["metadata"].set("name", name).set("namespace", ns);
  job["spec"].set("runPolicy", std::move(run_policy));
  job["spec"]["pytorchReplicaSpecs"]["Worker"].set("replicas", workers);
  return job;
}

// The controller admits this job, and does nothing else with it. These are the objects that it
// would create for it, without the owner, whose uid is not known yet.
struct Driven {
  Json job;
  std::vector<Json> children;
};

Driven driven(const std::string& name, int workers) {
  Json policy = Json::object({{"managedBy", "kueue.x-k8s.io/multikueue"}});
  Driven made{pytorchjob(kLimitNamespace, name, workers, std::move(policy)), {}};
  const auto job = v1::read_job(made.job, framework().replica_specs);
  made.children = v1::all_children(framework(), *job, v1::Settings());
  for (Json& child : made.children) child["metadata"].erase("ownerReferences");
  return made;
}

Task<void> post(Cluster& cluster, Json object) {
  const std::string kind(object.get_string("kind"));
  const kube::Resource resource = kind == "Pod"       ? kube::kPods
                                  : kind == "Service" ? kube::kServices
                                                      : framework().resource;
  co_await cluster.must(cluster.client().create(resource, std::move(object)));
}

struct Burst {
  double pods_per_second = 0;     // jobs a second until all pods exist
  double settled_per_second = 0;  // jobs a second until every status has settled
  double sent_per_second = 0;     // includes the time until no event follows
  double requests = 0;            // a job
  double status_writes = 0;       // a job
  double events = 0;              // a job
  Json status;                    // the status of one job
};

// Without a node pods stay pending, so a status only says that the job was seen.
bool is_settled(const Json& job) {
  const Json& status = job.get("status");
  return !status.get_array("conditions").empty() && !status.get_string("startTime").empty() &&
         status.find("replicaStatuses") != nullptr;
}

Task<void> count_requests(Context& context, int jobs, const std::string& before, Burst& result) {
  const std::string after = co_await read_metrics(context);
  const auto each = [&](const char* method, const char* resource) {
    return (requests(after, method, resource) - requests(before, method, resource)) / jobs;
  };
  result.status_writes = each("PATCH", "pytorchjobs/status");
  result.events = each("POST", "events");
  result.requests = (metric(after, "rest_client_requests_total", {}) -
                     metric(before, "rest_client_requests_total", {})) /
                    jobs;
}

// Waits until every job has its status, and for three seconds none has changed and no event was
// sent. Returns when the last event was seen; the epoch if none was sent any more. The metrics are
// read once a second: each time costs the controller as much as some jobs.
Task<Steady::time_point> await_quiet(Context& context, const Tally& settled, std::size_t desired) {
  const auto end = Steady::now() + std::chrono::seconds(600);
  Steady::time_point sent{};
  double before = -1;
  while (settled.count() != desired || seconds_since(std::max(settled.changed(), sent)) < 3) {
    if (Steady::now() > end) throw std::runtime_error("timed out: settled statuses");
    const std::string metrics = co_await read_metrics(context);
    const double events = requests(metrics, "POST", "events");
    if (before >= 0 && events != before) sent = Steady::now();
    before = events;
    co_await context.cluster.sleep(kube::Milliseconds(1'000));
  }
  co_return sent;
}

// `jobs` jobs of one master and `workers` workers.
Task<void> run_burst(Context& context, int jobs, int workers, Burst& result) {
  auto& cluster = context.cluster;
  const std::string before = co_await read_metrics(context);
  co_await cluster.make_namespace(kV1Namespace);
  Tally pods([](const Json&) { return true; });
  Tally settled(is_settled);
  const auto watching_pods = cluster.watch(kube::kPods, kV1Namespace, pods);
  const auto watching_jobs = cluster.watch(framework().resource, kV1Namespace, settled);
  co_await cluster.wait_until([&] { return pods.is_synced() && settled.is_synced(); },
                              std::chrono::seconds(10), "the first lists");
  const auto begin = Steady::now();
  const auto rate = [&](Steady::time_point end) {
    return jobs / std::chrono::duration<double>(end - begin).count();
  };
  std::function<Task<void>(int)> one = [&cluster, workers](int i) {
    return post(cluster, pytorchjob(kV1Namespace, name_of(i), workers));
  };
  co_await cluster.for_each(jobs, kV1Width, std::move(one));
  const auto desired = static_cast<std::size_t>(jobs);
  const auto desired_pods = desired * static_cast<std::size_t>(workers + 1);
  co_await cluster.wait_until([&] { return pods.count() == desired_pods; },
                              std::chrono::seconds(600), "all pods");
  result.pods_per_second = rate(pods.reached());
  const auto sent = co_await await_quiet(context, settled, desired);
  result.settled_per_second = rate(settled.changed());
  result.sent_per_second = rate(std::max(settled.changed(), sent));
  co_await count_requests(context, jobs, before, result);
  const kube::ObjectKey sample{kV1Namespace, name_of(0)};
  const Json job = co_await cluster.must(cluster.client().get(framework().resource, sample));
  result.status = job.get("status");
  for (const auto* group : {&watching_pods, &watching_jobs}) {
    (*group)->cancel();
    co_await (*group)->join();
  }
}

// Makes both namespaces of a scenario. It does not wait if the next step is not timed: the API
// server begins after five seconds.
Task<void> clean_up(Cluster& cluster, bool waits) {
  co_await cluster.remove_namespace(kV1Namespace, false);
  co_await cluster.remove_namespace(kLimitNamespace, waits);
  if (waits) co_await cluster.remove_namespace(kV1Namespace);
}

// Everything that the controller sends for one job, in its order.
Task<void> drive(Cluster& cluster, const Burst& measured, Driven& made) {
  const kube::ObjectKey key = kube::ObjectMeta::of(made.job).key();
  co_await post(cluster, std::move(made.job));
  for (Json& child : made.children) co_await post(cluster, std::move(child));
  co_await write_status(cluster, framework().resource, key, measured.status,
                        static_cast<int>(std::lround(measured.status_writes)));
  co_await write_events(cluster, framework().resource.kind, key,
                        static_cast<int>(std::lround(measured.events)));
}

// The controller runs on: its webhook is called for the driver's jobs, too.
Task<void> run_limit(Context& context, int jobs, const Burst& measured, Limit& limit) {
  std::vector<Driven> all;
  for (int i = 0; i < jobs; ++i) all.push_back(driven(name_of(i), 1));
  auto& cluster = context.cluster;
  std::function<Task<void>(int)> one = [&](int i) {
    return drive(cluster, measured, all[static_cast<std::size_t>(i)]);
  };
  co_await measure_limit(cluster, kLimitNamespace, jobs, 2 * jobs, std::move(one), limit);
}

// One request an item. The statuses and events of one job are few or come later.
Task<void> run_large_limit(Context& context, Limit& limit, double& seconds) {
  Driven large = driven(name_of(0), context.v1_workers);
  std::vector<Json> all = std::move(large.children);
  all.insert(all.begin(), std::move(large.job));
  const int count = static_cast<int>(all.size());
  auto& cluster = context.cluster;
  std::function<Task<void>(int)> one = [&](int i) {
    return post(cluster, std::move(all[static_cast<std::size_t>(i)]));
  };
  co_await measure_limit(cluster, kLimitNamespace, count, context.v1_workers + 1, std::move(one),
                         limit);
  seconds = count / limit.pods_per_second;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<Figure> at_once(Context& context, ControllerProcess& controller, int jobs, int rounds) {
  std::vector<double> pods, settled, cpu, limit_pods, limit_settled, limit_cpu, share, sent, peak;
  Burst burst;
  for (int round = 0; round < rounds; ++round) {
    controller.reset_peak();
    const double before = controller.usage().cpu_seconds;
    context.cluster.run(run_burst(context, jobs, 1, burst));
    const Usage after = controller.usage();
    Limit limit;
    context.cluster.run(run_limit(context, jobs, burst, limit));
    context.cluster.run(clean_up(context.cluster, true));
    pods.push_back(burst.pods_per_second);
    settled.push_back(burst.settled_per_second);
    cpu.push_back((after.cpu_seconds - before) * 1000 / jobs);
    peak.push_back(after.peak_mb);
    limit_pods.push_back(limit.pods_per_second);
    limit_settled.push_back(limit.settled_per_second);
    limit_cpu.push_back(limit.cpu_ms);
    share.push_back(100 * burst.settled_per_second / limit.settled_per_second);
    sent.push_back(100 * burst.sent_per_second / limit.settled_per_second);
  }
  const std::string size = std::to_string(jobs) + " PyTorchJobs at once: ";
  return {{size + "until all pods exist", median(pods), "jobs/s", kUpstreamsBest, true},
          {size + "by the driver", median(limit_pods), "jobs/s"},
          {size + "until every status has settled", median(settled), "jobs/s"},
          {size + "by the driver, all written", median(limit_settled), "jobs/s"},
          {size + "share of the driver, settled", median(share), "%", 85, true},
          {size + "the same, and until no event follows", median(sent), "%"},
          {size + "API requests a job", burst.requests, ""},
          {size + "statuses written a job", burst.status_writes, ""},
          {size + "events a job", burst.events, ""},
          {size + "CPU a job", median(cpu), "ms", std::max(2.5, 1.5 * median(limit_cpu))},
          {size + "the driver's own CPU a job", median(limit_cpu), "ms"},
          {size + "peak RSS", peak.front(), "MB", jobs <= 300 ? 30.0 : 40.0}};
}

// A third of a second each, so a single round says little.
std::vector<Figure> large(Context& context) {
  std::vector<double> controller, driver, share;
  for (int round = 0; round < 2 * context.rounds - 1; ++round) {
    Burst burst;
    context.cluster.run(run_burst(context, 1, context.v1_workers, burst));
    Limit limit;
    double limit_seconds = 0;
    context.cluster.run(run_large_limit(context, limit, limit_seconds));
    context.cluster.run(clean_up(context.cluster, true));
    controller.push_back(1 / burst.pods_per_second);
    driver.push_back(limit_seconds);
    share.push_back(100 * limit_seconds * burst.pods_per_second);
  }
  const std::string size = "a PyTorchJob of " + std::to_string(context.v1_workers) + " workers: ";
  return {{size + "until all pods exist", median(controller), "s"},
          {size + "by the driver", median(driver), "s"},
          {size + "share of the driver", median(share), "%", 85, true}};
}

}  // namespace

std::vector<Figure> v1_jobs(Context& context, std::unique_ptr<ControllerProcess>& controller) {
  const std::vector<std::string> flags{"--enable-scheme=all"};
  controller.reset();
  controller = context.start_controller(flags);
  std::vector<Figure> figures;
  const auto add = [&figures](const std::vector<Figure>& more) {
    figures.insert(figures.end(), more.begin(), more.end());
  };
  Figure rss = idle(context, *controller).front();
  rss.what += ", with V1 jobs";
  rss.goal += 6;
  add({rss});
  const auto running = [](const std::string& ns, const std::string& name) {
    return pytorchjob(ns, name, 1);
  };
  add(latency(context, {"POST answered until both pods of a PyTorchJob exist",
                        "bench-v1-latency",
                        framework().resource,
                        running,
                        kube::kPods,
                        {"-master-0", "-worker-0"},
                        25,
                        50}));
  add(at_once(context, *controller, context.v1_jobs, context.rounds));
  if (context.jobs > context.v1_jobs) add(at_once(context, *controller, context.jobs, 1));
  add(large(context));
  const auto suspended_job = [](const std::string& ns, const std::string& name) {
    return pytorchjob(ns, name, 1, Json::object({{"suspend", true}}));
  };
  add(suspended(context, controller,
                {"bench-v1-suspended", framework().resource, suspended_job, context.v1_suspended,
                 150, flags}));
  controller.reset();
  controller = context.start_controller({});
  return figures;
}

}  // namespace trainer::bench
