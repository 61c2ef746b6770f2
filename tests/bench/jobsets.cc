// JobSets that users write by hand: many at once, and one that restarts.
#include <cmath>
#include <utility>

#include "api/jobset.hh"
#include "kube/model/resources.hh"
#include "tests/bench/scenarios.hh"

namespace trainer::bench {
namespace {

using kube::Json;
using kube::Task;

constexpr const char* kAttempt = "jobset.sigs.k8s.io/restart-attempt";
constexpr int kJobSetWidth = 32;

Task<double> requests(Context& context) {
  const std::string metrics = co_await read_metrics(context);
  co_return metric(metrics, "rest_client_requests_total", {});
}

// One Job of each JobSet is active, as its status says.
bool is_jobset_settled(const Json& set) {
  const auto* status = set.find("status");
  if (!status) return false;
  const auto& jobs = status->get_array("replicatedJobsStatus");
  return jobs.size() == 1 && jobs[0].get_int("active") == 1;
}

struct Taken {
  double seconds = 0;
  double requests = 0;
};

Task<void> run_at_once(Context& context, Taken& taken) {
  auto& cluster = context.cluster;
  const std::string ns = "bench-jobsets";
  co_await cluster.make_namespace(ns);
  const double before = co_await requests(context);
  Tally settled(is_jobset_settled);
  const auto watching = cluster.watch(kJobSets, ns, settled);
  const auto begin = Steady::now();
  const std::function<Task<void>(int)> post = [&cluster, &ns](int i) -> Task<void> {
    return [](Cluster& c, std::string where, int number) -> Task<void> {
      Json set = jobset(where, "s" + std::to_string(number), 1, 1);
      co_await c.must(c.client().create(kJobSets, std::move(set)));
    }(cluster, ns, i);
  };
  co_await cluster.for_each(context.jobs, kJobSetWidth, post);
  co_await cluster.wait_until(
      [&] { return settled.count() == static_cast<std::size_t>(context.jobs); },
      std::chrono::seconds(900), "a settled status of every JobSet");
  taken.seconds = std::chrono::duration<double>(settled.reached() - begin).count();
  taken.requests = (co_await requests(context)) - before;
  watching->cancel();
  co_await watching->join();
}

Json restarting_set(const std::string& ns, int jobs) {
  Json set = jobset(ns, "again", jobs, 1);
  set["spec"]["failurePolicy"].set("maxRestarts", 1);
  return set;
}

// Fails one pod, as a kubelet would report it.
Task<void> fail_a_pod(Cluster& cluster, kube::ObjectKey pod) {
  Json patch = Json::object();
  patch["status"].set("phase", "Failed");
  co_await cluster.must(
      cluster.client().merge_patch(kube::kPods, std::move(pod), std::move(patch), "status"));
}

Task<void> run_restart(Context& context, Taken& taken) {
  auto& cluster = context.cluster;
  const std::string ns = "bench-restart";
  co_await cluster.make_namespace(ns);
  const auto desired = static_cast<std::size_t>(context.large_jobs);
  Tally pods([](const Json&) { return true; });
  std::string victim;
  pods.on_put = [&victim](const Json& pod) {
    victim = pod.find_path({"metadata", "name"})->as_string();
  };
  Tally again([](const Json& job) {
    const auto* labels = job.find_path({"metadata", "labels"});
    return labels && labels->get_string(kAttempt) == "1";
  });
  const auto watching_pods = cluster.watch(kube::kPods, ns, pods);
  const auto watching_jobs = cluster.watch(kube::kJobs, ns, again);
  co_await cluster.must(cluster.client().create(kJobSets, restarting_set(ns, context.large_jobs)));
  co_await cluster.wait_until([&] { return pods.count() == desired; }, std::chrono::seconds(300),
                              "all pods");
  // The following time is that of the restart alone.
  co_await cluster.sleep(kube::Milliseconds(3'000));
  const double before = co_await requests(context);
  const auto begin = Steady::now();
  kube::ObjectKey pod{ns, victim};
  co_await fail_a_pod(cluster, std::move(pod));
  co_await cluster.wait_until([&] { return again.count() == desired; }, std::chrono::seconds(300),
                              "all Jobs of the second attempt");
  taken.seconds = std::chrono::duration<double>(again.reached() - begin).count();
  co_await cluster.sleep(kube::Milliseconds(3'000));
  taken.requests = (co_await requests(context)) - before;
  for (const auto* group : {&watching_pods, &watching_jobs}) {
    (*group)->cancel();
    co_await (*group)->join();
  }
}

}  // namespace

std::vector<Figure> jobsets_at_once(Context& context, ControllerProcess& controller) {
  const Usage before = controller.usage();
  controller.reset_peak();
  Taken taken;
  context.cluster.run(run_at_once(context, taken));
  const Usage after = controller.usage();
  context.cluster.run(context.cluster.remove_namespace("bench-jobsets"));
  const std::string sets = std::to_string(context.jobs) + " JobSets at once: ";
  return {{sets + "until every status has settled", context.jobs / taken.seconds, "sets/s"},
          {sets + "API requests each", taken.requests / context.jobs, ""},
          {sets + "CPU each", (after.cpu_seconds - before.cpu_seconds) * 1000 / context.jobs, "ms"},
          {sets + "peak RSS", after.peak_mb, "MB", 40}};
}

std::vector<Figure> restart(Context& context, ControllerProcess& controller) {
  Taken taken;
  const Usage before = controller.usage();
  controller.reset_peak();
  context.cluster.run(run_restart(context, taken));
  const Usage after = controller.usage();
  context.cluster.run(context.cluster.remove_namespace("bench-restart"));
  const std::string jobs = std::to_string(context.large_jobs) + " Jobs made and restarted: ";
  return {{jobs + "from the failed pod to the last new Job", taken.seconds, "s"},
          {jobs + "API requests of the restart", taken.requests, ""},
          {jobs + "CPU", after.cpu_seconds - before.cpu_seconds, "s"},
          {jobs + "peak RSS", after.peak_mb, "MB", 40}};
}

}  // namespace trainer::bench
