// V1 jobs and their children in memory: carries out what plan() asks for as the API server would,
// and lets a test play the users, the kubelet, the schedulers and the clock.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "runtimes/v1/plan.hh"
#include "tests/support/catch.hh"

template <>
struct Catch::StringMaker<kube::Json> {
  static std::string convert(const kube::Json& value) { return kube::print_json(value); }
};

namespace trainer::v1::test {

kube::Json yaml(std::string_view text);
// A job of the kind with `roles` ("Master Worker*2"), and `more` members of its spec as YAML flow
// ("runPolicy: {backoffLimit: 3}").
kube::Json make_job(std::string_view kind, std::string_view roles, std::string_view more = {},
                    std::string_view name = "p");
Job read(const kube::Json& object);
const Framework& framework_of(std::string_view kind);

class World {
 public:
  explicit World(std::string ns = std::string("ns"));
  // With one job, settled.
  explicit World(const kube::Json& job);

  // Create, or replace. The answer's code: 201, 200 or 403.
  int apply(kube::Json object);
  int patch(const std::string& key, const kube::Json& body);
  void remove(const std::string& key);  // by a user; pods with `is_graceful` only begin to end
  void release(const std::string& key);
  // One reconcile of a job; the plan has been carried out.
  JobPlan reconcile(const std::string& job_key);
  void settle();
  void advance(std::int64_t seconds);  // the clock, and settles

  // The kubelet: "Running", "Succeeded", or "Failed" with an exit code of the first container.
  void pod(const std::string& name, std::string_view phase, std::optional<int> exit_code = {},
           int restarts = 0);
  // The same, before the controller has seen it.
  void set_pod(const std::string& name, std::string_view phase, std::optional<int> exit_code = {},
               int restarts = 0);
  void all_pods(std::string_view phase);

  bool has(const std::string& key) const { return objects.count(key) > 0; }
  const kube::Json& at(const std::string& key) const;
  std::vector<std::string> names(std::string_view kind) const;
  // "Created Running!": in order, "!" where the status is False.
  std::string conditions(const std::string& job = "p") const;
  std::string message(std::string_view type, const std::string& job = "p") const;
  // "2 active 1 failed" of one role; "none" where the role has no status.
  std::string counters(std::string_view role, const std::string& job = "p") const;
  // The value of the last variable of this name in a pod's container; "-" where there is none.
  std::string env(const std::string& pod, std::string_view name, std::size_t container = 0) const;
  bool has_event(std::string_view text) const;

  std::map<std::string, kube::Json> objects;  // "Pod/p-master-0"
  std::vector<std::string> events;            // "PyTorchJob p: Normal Reason: message"
  std::string ns;
  Settings settings;
  kube::Time now = kube::Time::from_seconds(1'800'000'000);
  bool is_graceful = false;
  bool has_upstreams_crds = false;  // which drop the extensions of a status
  int writes = 0;
  int kill_at = std::numeric_limits<int>::max();  // of `writes`: what follows does not happen
  JobPlan::Counts totals;

 private:
  std::string key_of(std::string_view job) const;
  void run(const kube::Action& action);
  bool is_killed() const;
  void record(const std::string& job, const std::vector<kube::PlannedEvent>& events);

  std::map<std::string, std::optional<std::unordered_set<std::uint64_t>>> relayed_;
  std::map<std::string, StatusExtensions> extensions_;
  int version_ = 0;
};

}  // namespace trainer::v1::test
