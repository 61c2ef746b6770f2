// What is measured. Each scenario works in a namespace of its own and leaves none behind.
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

struct Context {
  Cluster& cluster;
  std::string metrics_server;  // "https://127.0.0.1:18080"
  std::function<std::unique_ptr<ControllerProcess>()> start_controller;
  int jobs = 1000;
  int suspended = 2000;
  int latency_samples = 30;
  int large_jobs = 200;
  int large_pods = 50;
};

// The runtime that the scenarios' jobs name; made when absent.
kube::Task<void> make_runtime(Cluster& cluster);
// A JobSet written by hand: no TrainJob, one replicated job "w".
kube::Json jobset(const std::string& ns, const std::string& name, int jobs, int pods);
kube::Json trainjob(const std::string& ns, const std::string& name, int nodes, bool is_suspended);

// What a burst took, so that the plain driver can do the same.
struct BurstResult {
  double pods_per_second = 0;     // jobs a second until all pods exist
  double settled_per_second = 0;  // jobs a second until every status has settled
  kube::Json trainjob, snapshot, jobset, service, job;  // of one job, as stored
  int trainjob_status_writes = 1;                       // a job, rounded up
  int jobset_status_writes = 1;
  int events = 0;
  double requests = 0;    // of any kind, a job
  double reconciles = 0;  // of both loops, a job
};

// Memory of a controller that has nothing to do.
std::vector<Figure> idle(Context& context, ControllerProcess& controller);
// `jobs` two-node TrainJobs applied at once.
std::vector<Figure> burst(Context& context, ControllerProcess& controller, BurstResult& result);
// The same requests by a plain driver while no controller runs.
std::vector<Figure> limit(Context& context, const BurstResult& measured);
// From the answer to a POST until the Job exists, one TrainJob a second.
std::vector<Figure> latency(Context& context);
// One JobSet of `large_jobs` Jobs with `large_pods` pods each.
std::vector<Figure> large_jobset(Context& context, ControllerProcess& controller);
// `jobs` JobSets of one Job applied at once; and the restart of a JobSet of `large_jobs` Jobs.
std::vector<Figure> jobsets_at_once(Context& context, ControllerProcess& controller);
std::vector<Figure> restart(Context& context, ControllerProcess& controller);
// Suspended TrainJobs: memory, and the time until a restarted controller is ready.
std::vector<Figure> suspended(Context& context, std::unique_ptr<ControllerProcess>& controller);

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

}  // namespace trainer::bench
