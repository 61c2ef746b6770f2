// A JobSet and its children are in memory. This executes what plan() asks for by the API server's
// rules, and a test plays the Job controller, the garbage collector and the clock.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "kube/model/time.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/jobset/plan.hh"
#include "tests/support/catch.hh"

template <>
struct Catch::StringMaker<kube::Json> {
  static std::string convert(const kube::Json& value) { return kube::print_json(value); }
};

namespace trainer::jobset::test {

// This is the fixture of the acceptance checklist: replicated-job-a x1 and replicated-job-b x3,
// Indexed. `more` has further members of the spec, in YAML, indented by two.
std::string test_js(std::string_view more = {});

class World {
 public:
  // A JobSet in YAML; schema and webhook defaults are filled in.
  explicit World(std::string_view yaml, Gates gates = {});

  // Makes one pass: plans, and executes the plan. Returns the plan.
  kube::Plan context();
  // Makes passes until nothing is asked for any more; fails the test if that never happens.
  void settle();

  // The Job controller.
  void set_status(const std::string& job, const kube::Json& status);
  void ready(const std::string& job);
  void activate(const std::string& job);
  void complete(const std::string& job);
  void fail(const std::string& job, std::string_view reason = "BackoffLimitExceeded",
            std::string_view message = {});
  void set_condition(const std::string& job, std::string_view type, std::string_view reason,
                     std::string_view message);
  // The garbage collector: a Job that waits for its pods is gone.
  void release(const std::string& job);
  void release_all();
  // A Job beside those of the JobSet.
  void add_foreign(kube::Json job);
  // Another client deletes or edits.
  void remove(const std::string& job);
  void edit_job(const std::string& job, const kube::Json& patch);
  void edit(const kube::Json& patch);
  void set_suspend(bool value);

  const kube::Json& jobset() const { return jobset_; }
  kube::Json& jobset() { return jobset_; }
  const std::map<std::string, kube::Json>& jobs() const { return jobs_; }
  const kube::Json& job(const std::string& name) const;
  std::vector<std::string> job_names() const;
  // Returns how many Jobs there are of each restart-attempt.
  std::map<std::string, int> attempts() const;
  int suspended_jobs() const;

  // "True", "False" or "" where there is none.
  std::string condition(std::string_view type) const;
  std::string condition_reason(std::string_view type) const;
  std::string terminal_state() const;
  // "restarts/restartsCountTowardsMax"
  std::string restarts() const;
  // "ready R succeeded S failed F active A suspended X" of one replicated job.
  std::string counters(std::string_view replicated_job) const;
  const kube::Json* replicated_job_status(std::string_view replicated_job) const;

  Gates gates;
  kube::Time now = kube::Time::from_seconds(1'800'000'000);
  std::vector<PodView> pods;
  std::vector<kube::PlannedEvent> events;
  std::map<std::string, kube::Json> services;
  std::map<std::string, kube::Json> claims;
  bool is_jobset_deleted = false;
  int status_writes = 0;
  JobDecorators decorators;
  // These are the API server's answers to writes, by kind.
  std::map<std::string, std::string> refusals;
  bool is_of_trainjob = false;
  std::string warning;  // see Observed

 private:
  void run(const kube::Action& action);
  void patch_status(const kube::Json& patch);
  void create_job(const kube::Action& action);
  std::string next_version();
  kube::Json& job_at(const std::string& name);

  kube::Json jobset_;
  std::map<std::string, kube::Json> jobs_;
  // Jobs that were complete, in their last known state.
  std::vector<std::shared_ptr<JobView>> removed_;
  std::optional<kube::Refusal> refusal_;  // the refusal of the last pass
  int version_ = 100;
};

// Returns texts such as "Normal AllJobsCompleted: jobset completed successfully".
std::vector<std::string> texts(const std::vector<kube::PlannedEvent>& events);

// Jobs of a World's JobSet.
inline const std::string kA = "test-js-replicated-job-a-0";
inline const std::string kB = "test-js-replicated-job-b-1";
inline const std::vector<std::string> kAllB = {
    "test-js-replicated-job-b-0", "test-js-replicated-job-b-1", "test-js-replicated-job-b-2"};

}  // namespace trainer::jobset::test
