// A TrainJob and its children are in memory: plans are executed on it by the API server's rules, so
// that tests read like a job's life.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer::test {

kube::Json yaml(std::string_view text);

// A runtime with one replicated job `node` of two nodes.
kube::Json torch_runtime();
kube::Json train_job();

struct PodSpec {
  std::string name = "j-node-0-0-abcde";
  std::string replicated_job = "node";
  std::int32_t index = 0;
  std::string phase = "Pending";
  std::string node_name;
  bool is_ready = false;
  std::string waiting_reason;
  std::string waiting_message;
  std::int32_t attempt = 0;
};

class World {
 public:
  explicit World(kube::Json trainjob = train_job(), kube::Json runtime = torch_runtime());

  // Reads what the plan asks for, then executes it. Returns the plan that was executed.
  TrainJobPlan reconcile();
  // Reconciles until nothing is written any more; fails the test after 20 rounds. Returns the
  // reasons of all events on the way.
  std::vector<std::string> settle();

  TrainJob job() const;
  const kube::Json& status() const;
  std::string phase() const { return std::string(status().get_string("phase")); }
  std::string reason() const { return std::string(status().get_string("reason")); }
  std::string message() const { return std::string(status().get_string("message")); }
  // "Suspended=False,Complete=True"
  std::string conditions() const;

  void set_spec(std::string_view name, kube::Json value);
  // The JobSet's controller: one entry of replicatedJobsStatus and conditions.
  void set_jobset_status(kube::Json status);
  void put_pod(const PodSpec& spec);
  void fail_pod(const std::string& name, std::int32_t exit_code, std::string message = "");
  void advance(std::chrono::seconds by) { now = now + by; }

  kube::Json object;  // the TrainJob
  kube::Json runtime;
  bool is_runtime_deleted = false;
  std::optional<kube::Json> jobset;
  std::map<std::string, kube::Json> others;  // "Secret/j-mpi-ssh-auth"
  std::map<std::string, std::shared_ptr<PodView>> pods;
  std::vector<std::string> ended_jobs;  // these got a deadline that has passed
  std::optional<kube::Refusal> refusal;
  std::string waiting_event;
  bool have_jobs_started = true;
  bool are_jobs_created = true;
  bool is_jobset_controller_active = true;
  jobset::Gates gates;
  bool are_minor_statuses_held = false;  // the status rate limiter holds them for a moment, too
  std::string managed_by_stamp;
  bool marks_finished = false;
  const HeartbeatFacts* heartbeats = nullptr;
  std::optional<kube::Json> deleted_jobset;
  bool is_deleted = false;  // the TrainJob
  kube::Time now = kube::Time::from_seconds(1'800'000'000);
  PipelineOptions options{production_plugins()};
  int requests = 0;  // writes carried out
  int reads = 0;

 private:
  std::vector<JobView> jobs_of_jobset() const;
  kube::ReadObject read(const kube::NamedObject& named);
  void run(const kube::Action& action, const kube::ReadStamp& stamp);
  void write_status(const TrainJobPlan& plan);

 public:
  // A process keeps this about the job.
  kube::NamedObjects known;
  std::string seen_event;
  std::int32_t total_nodes = 0;
  std::uint64_t stacks_number = 0;
  std::optional<ProcessRestartCount> process_restarts;
  std::optional<kube::Time> scheduled_since;
  // A new process knows nothing.
  void restart();
};

// "ConfigMap/j-runtime-snapshot"; with the group where it is not core.
std::string name_in_world(const kube::NamedObject& named);
std::vector<std::string> reasons_of(const TrainJobPlan& plan);
const kube::Action* find_action(const TrainJobPlan& plan, kube::Action::Verb verb,
                                std::string_view kind);

}  // namespace trainer::test
