// One Job and its pods are in memory. This executes what plan() asks for by the API server's rules,
// and a test plays the user, the scheduler, the kubelet and the clock.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "runtimes/batch/plan.hh"
#include "tests/support/catch.hh"

template <>
struct Catch::StringMaker<kube::Json> {
  static std::string convert(const kube::Json& value) { return kube::print_json(value); }
};

namespace trainer::batch::test {

kube::Json yaml(std::string_view text);
// Members of `more` replace those of `object`, as a merge patch does.
kube::Json with(kube::Json object, std::string_view more);

class World {
 public:
  // Job "j" with this spec, in YAML flow, and a template of one container; settled.
  explicit World(std::string_view spec);

  // Makes one plan, and executes it. There is no Job if the test has removed it.
  BatchJobPlan reconcile();
  void settle();
  void advance(std::int64_t seconds);  // the clock, and settles
  void patch_job(std::string_view patch);

  // Runs the youngest pod whose name starts so. A running pod has a node.
  void run(std::string_view pod);
  void succeed(std::string_view pod);
  void fail(std::string_view pod, int exit_code = 1, std::string_view condition = {});
  void remove(std::string_view pod);  // by a user
  void end_removed();                 // the kubelet ends pods that are being deleted
  const kube::Json& at(std::string_view pod) const;
  const kube::Json& status() const { return job.get("status"); }

  // Returns "j-0 Running, j-1 Pending": without the unique part of names, "!" if it is being
  // deleted and "*" if it has the tracking finalizer.
  std::string pods() const;
  // Returns "SuccessCriteriaMet Suspended!": in order, "!" if the status is False.
  std::string conditions() const;
  std::string message(std::string_view type) const;  // "REASON: TEXT" of a condition
  // "2 active 1 ready 1 failed", without zeros.
  std::string counters() const;
  bool has_event(std::string_view text) const;

  kube::Json job;  // null: there is none
  std::map<std::string, kube::Json> all_pods;
  std::vector<std::string> events;  // "Normal Reason: message"
  kube::Time now = kube::Time::from_seconds(1'800'000'000);
  int writes = 0;
  int refusals = 0;  // the refusals of pods that are to be created

 private:
  std::string youngest(std::string_view prefix) const;
  void end(std::string_view pod, std::string_view phase, int exit_code);
  bool act(const kube::Action& action);
  void write_status(const kube::Plan& plan);
  void collect(const std::string& name);

  Backoff backoff_;
  int version_ = 0;
};

}  // namespace trainer::batch::test
