// These scenarios are measured. Each works in a namespace of its own and deletes it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/cluster.hh"
#include "tests/bench/controller_process.hh"

namespace trainer::bench {

// One line of the table. A goal of 0 is none.
struct Figure {
  std::string what;
  double value = 0;
  std::string unit;
  double goal = 0;
  bool is_more_better = false;
  std::string note;
  bool is_met() const { return goal == 0 || (is_more_better ? value >= goal : value <= goal); }
};

// These sizes are measured.
struct Sizes {
  int jobs = 1000;
  int suspended = 2000;
  int latency_samples = 30;
  int large_jobs = 200;
  int large_pods = 50;
  int v1_jobs = 300;
  int v1_workers = 200;
  int v1_suspended = 50'000;
  int rounds = 3;  // rounds of V1 jobs at once; the median counts
};

struct Context : Sizes {
  Cluster& cluster;
  std::string metrics_server;  // "https://127.0.0.1:18080"
  // With flags beside those that all scenarios need.
  std::function<std::unique_ptr<ControllerProcess>(const std::vector<std::string>& flags)>
      start_controller;
};

// The runtime that the scenarios' jobs name; made when absent.
kube::Task<void> make_runtime(Cluster& cluster);
// A JobSet written by hand: no TrainJob, one replicated job "w".
kube::Json jobset(const std::string& ns, const std::string& name, int jobs, int pods);
kube::Json trainjob(const std::string& ns, const std::string& name, int nodes, bool is_suspended);

// This is the load of a burst, so that the plain driver can do the same.
struct BurstResult {
  double pods_per_second = 0;     // jobs a second until all pods exist
  double settled_per_second = 0;  // jobs a second until every status has settled
  // The objects of one job, in their stored form.
  kube::Json trainjob, snapshot, jobset, service, job;
  int trainjob_status_writes = 1;  // a job, rounded up
  int jobset_status_writes = 1;
  int events = 0;
  double requests = 0;    // requests of any kind, for each job
  double reconciles = 0;  // reconciles of both loops, for each job
};

// Memory of a controller that has nothing to do.
std::vector<Figure> idle(Context& context, ControllerProcess& controller);
// `jobs` two-node TrainJobs applied at once.
std::vector<Figure> burst(Context& context, ControllerProcess& controller, BurstResult& result);
// The same requests by a plain driver while no controller runs.
std::vector<Figure> limit(Context& context, const BurstResult& measured);
// Latency is measured with this: the time from the answer to a POST of `object(ns, name)` until all
// of its children exist, one object a second.
struct Probe {
  std::string what;
  std::string ns;
  kube::Resource resource;
  std::function<kube::Json(const std::string& ns, const std::string& name)> object;
  kube::Resource child;
  std::vector<std::string> children;  // the suffixes of the children's names
  double p50 = 0, p95 = 0;            // goals, in ms
};
std::vector<Figure> latency(Context& context, const Probe& probe);
std::vector<Figure> latency(Context& context);  // the latency of TrainJobs, until the Job exists
// One JobSet of `large_jobs` Jobs with `large_pods` pods each.
std::vector<Figure> large_jobset(Context& context, ControllerProcess& controller);
// `jobs` JobSets of one Job applied at once; and the restart of a JobSet of `large_jobs` Jobs.
std::vector<Figure> jobsets_at_once(Context& context, ControllerProcess& controller);
std::vector<Figure> restart(Context& context, ControllerProcess& controller);
// Suspended objects: memory, and a restart of the controller, with its flags.
struct SuspendedObjects {
  std::string ns;
  kube::Resource resource;
  std::function<kube::Json(const std::string& ns, const std::string& name)> object;
  int count = 0;
  double mb_of_50_000 = 0;  // goal
  std::vector<std::string> flags = {};
};
std::vector<Figure> suspended(Context& context, std::unique_ptr<ControllerProcess>& controller,
                              const SuspendedObjects& objects);
std::vector<Figure> suspended(Context& context, std::unique_ptr<ControllerProcess>& controller);
// PyTorchJobs `kubeflow.org/v1`, by a controller that reconciles TrainJobs as well; `controller` is
// as before at the end.
std::vector<Figure> v1_jobs(Context& context, std::unique_ptr<ControllerProcess>& controller);

// A plain driver reaches these values.
struct Limit {
  double pods_per_second = 0;     // items a second until all pods exist
  double settled_per_second = 0;  // items a second until all is written and no pod changes
  double cpu_ms = 0;  // an item: what it costs to send the requests and read the answers
};
// `one(0)` to `one(count - 1)` in a namespace of that name, until there are `pods` in it.
kube::Task<void> measure_limit(Cluster& cluster, std::string ns, int count, int pods,
                               std::function<kube::Task<void>(int)> one, Limit& limit);
// Writes a status so many times, each time with another condition.
kube::Task<void> write_status(Cluster& cluster, kube::Resource resource, kube::ObjectKey key,
                              kube::Json status, int times);
kube::Task<void> write_events(Cluster& cluster, std::string kind, kube::ObjectKey key, int times);

// The address that start_controller gives the metrics server, and the health server.
inline constexpr const char* kMetricsAddress = "127.0.0.1:18080";
inline constexpr const char* kHealthAddress = "127.0.0.1:18081";
// A GET of SERVER/PATH, "http://HOST:PORT" or https without verification; empty when nothing
// answers with 200.
kube::Task<std::string> get_local(Cluster& cluster, std::string server, std::string path);
// The controller's metrics; throws std::runtime_error when it does not answer.
kube::Task<std::string> read_metrics(Context& context);
// The sum of a counter's samples whose labels contain all of `labels`.
double metric(const std::string& exposition, const std::string& name,
              const std::vector<std::string>& labels);
// Returns the value of rest_client_requests_total.
double requests(const std::string& exposition, const std::string& method,
                const std::string& resource);

}  // namespace trainer::bench
