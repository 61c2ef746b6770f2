// What the policies of one reconcile of a Job share. Internal to runtimes/batch.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/batch/index_set.hh"
#include "runtimes/batch/plan.hh"

namespace trainer::batch {

// How the Job ends. It is written as FailureTarget or SuccessCriteriaMet first, and as Failed or
// Complete once all pods are counted and gone.
struct Verdict {
  bool is_success = false;
  std::string reason;
  std::string message;
  bool is_stored = false;  // an earlier plan has written it
};

using UidSet = std::set<std::string, std::less<>>;

// Actions of a later stage wait for those of an earlier one.
inline constexpr int kFirst = 0;
inline constexpr int kSecond = 1;
inline constexpr int kCreations = 2;  // and later ones, for batches that grow (see create_pods())

struct Context {
  explicit Context(const Observed& observed);

  const Observed& observed;
  const Job& job;
  std::vector<const PodView*> pods;    // of this Job; by index where it is Indexed
  std::vector<const PodView*> active;  // neither over nor being deleted
  kube::Json status;                   // what will be written
  JobPlan plan;

  UidSet uncounted_succeeded;  // status.uncountedTerminatedPods, as stored
  UidSet uncounted_failed;
  std::int32_t succeeded = 0;  // with those that are not counted yet
  std::int32_t failed = 0;
  std::int32_t ready = 0;
  std::int32_t active_count = 0;  // without those that this plan deletes
  std::int32_t terminating = 0;   // with them
  // Of an Indexed Job.
  IndexSet counted_indexes;    // status.completedIndexes, as stored
  IndexSet succeeded_indexes;  // with new ones
  IndexSet failed_indexes;     // under backoffLimitPerIndex
  // Failed pods that stay until their index has a new pod, which takes over their counts.
  std::map<std::int32_t, const PodView*> replaced;  // by index

  std::optional<Verdict> verdict;

  bool is_failed(const PodView& pod) const;
  bool is_terminating(const PodView& pod) const;
  // Whether the pod has the tracking finalizer, is not in `uncounted`, and has an index of this Job
  // (see Job::has_index()).
  bool is_new(const PodView& pod, const UidSet& uncounted) const;

  void delete_pod(const PodView& pod, int stage);
  // Removes the finalizer batch.kubernetes.io/job-tracking from the pod.
  void release(const PodView& pod, int stage);
  void fail(std::string_view reason, std::string message);
  void succeed(std::string_view reason, std::string message);
  // False where nothing changed. A condition that does not exist is not made False.
  bool set_condition(std::string_view type, bool is_true, std::string_view reason,
                     std::string_view message);
  // Plans an event that is recorded after the status.
  void report(std::string_view type, std::string_view reason, std::string_view message);
  // Plans an event of type Normal that is recorded after the actions.
  void note(std::string_view reason, std::string message);
};

}  // namespace trainer::batch
