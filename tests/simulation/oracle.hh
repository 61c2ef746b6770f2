// These states must never happen; every change of the store is checked for them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/simulation/api_store.hh"

namespace trainer::simulation {

// It knows only the writes of the controller. The first violation is kept, as a sentence.
class Oracle {
 public:
  explicit Oracle(ApiStore& store);

  const std::optional<std::string>& violation() const { return violation_; }
  void report(std::string what);
  // An object that the controller must not write.
  void declare_foreign(const std::string& uid) { foreign_.insert(uid); }
  // Writes of the controller's that changed something, events included.
  int writes() const { return writes_; }
  const std::string& last_write() const { return last_write_; }

 private:
  void on_change(const Change& change);
  void check_ownership(const Change& change);
  void check_restarts(const Change& change);
  void check_end(const Change& change);
  void check_creation(const Change& change);
  void check_job_deletion(const Change& change);
  void check_overlap(const Change& change);
  void note_job(const Change& change);
  Object owner_of(const kube::Json& object) const;

  ApiStore& store_;
  std::optional<std::string> violation_;
  std::set<std::string> foreign_;
  std::set<std::string> roots_;      // uids of all TrainJobs and JobSets there ever were
  std::set<std::string> abandoned_;  // uids of Jobs that others removed without awaiting their pods
  std::map<std::string, std::set<int>> failed_attempts_;  // by JobSet uid
  int writes_ = 0;
  std::string last_write_;
};

// Completed, Complete or Failed is True.
bool has_ended(const kube::Json& object);
bool is_condition_true(const kube::Json& object, std::string_view type);
int attempt_of(const kube::Json& object);

}  // namespace trainer::simulation
