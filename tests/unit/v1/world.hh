// V1 jobs and their children are in memory. This executes what plan() asks for by the API server's
// rules, and a test plays the users, the kubelet, the schedulers and the clock.
#pragma once

#include <functional>
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
V1Job read(const kube::Json& object);
const Framework& framework_of(std::string_view kind);

// This is what happens to a write.
enum class Fate {
  kDone,
  kConflict,  // answered 409: nothing is written
  kFailed,    // answered 500: nothing is written
  kLost,      // written, but the answer does not arrive
};

class World {
 public:
  explicit World(std::string ns = std::string("ns"));
  // With one job, settled.
  explicit World(const kube::Json& job);

  // Creates or replaces it. Returns the answer's code: 201, 200 or 403.
  int apply(kube::Json object);
  int patch(const std::string& key, const kube::Json& body);
  void remove(const std::string& key);  // by a user; pods with `is_graceful` only begin to end
  void release(const std::string& key);
  // Makes one reconcile of a job; the plan has been executed, as far as the fates of its writes
  // allow.
  V1JobPlan reconcile(const std::string& job_key);
  // Removes the objects that a deleted job has left; release() does so at once.
  void collect_garbage();
  // The watch of a kind brings what it has not brought yet, see `seen`.
  void sync(std::string_view kind);
  // A new process of the controller lists everything and knows nothing else, see `seen`.
  void restart();
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
  bool has_upstreams_crds = false;  // those CRDs drop the extensions of a status
  // The fate of each write; without it all are done.
  std::function<Fate(const kube::Resource&)> fate;
  std::optional<kube::Refusal> refusal;           // see Observed
  std::function<void(const kube::Json&)> on_pod;  // each pod that the controller creates
  // These are the controller's caches, by key: objects that its watches have brought, and the
  // answers to its own writes. nullopt: it sees all objects in their present state, at any time.
  std::optional<std::map<std::string, kube::Json>> seen;
  int writes = 0;
  int kill_at = std::numeric_limits<int>::max();  // a number of `writes`: later ones do not happen
  V1JobPlan::Counts totals;

 private:
  // This is kept of a job between two reconciles, like JobController::Memory.
  struct Memory {
    kube::NamedObjects objects;
    std::optional<std::unordered_set<std::uint64_t>> relayed;
    StatusExtensions extensions;
    bool is_status_unknown = false;
  };

  std::string key_of(std::string_view job) const;
  const std::map<std::string, kube::Json>& caches() const { return seen ? *seen : objects; }
  V1JobPlan make_plan(const V1Job& job, const Framework& framework, Memory& memory) const;
  // These answer whether the controller knows that the write is done.
  bool run(const kube::Action& action);
  bool run_all(const std::vector<kube::Action>& actions);
  bool write_status(const std::string& job_key, const kube::Json& observed,
                    const kube::Json& patch);
  bool create(const std::string& key, const kube::Action& action, bool is_answered);
  void answer(const std::string& key);  // puts the answer of a write into the caches
  Fate draw(const kube::Resource& resource);
  // Reads the job, if the last plan's status may be written.
  bool is_up_to_date(const std::string& job_key, const kube::Json& observed, Memory& memory);
  void keep_status(const V1JobPlan& made, Memory& memory);  // the status of the plan is stored
  bool is_killed() const;
  void record(const std::string& job, const std::vector<kube::PlannedEvent>& events);

  std::map<std::string, Memory> memories_;  // by uid
  int version_ = 0;
};

}  // namespace trainer::v1::test
