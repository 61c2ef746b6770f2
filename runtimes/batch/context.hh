// The policies of one reconcile of a Job share this context. Internal to runtimes/batch.
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

// The verdict says how the Job ends. It is written as FailureTarget or SuccessCriteriaMet first,
// and as Failed or Complete once all pods are counted and gone.
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
// This and later stages are for batches that grow (see create_pods()).
inline constexpr int kCreations = 2;

struct Context {
  explicit Context(const Observed& observed);

  const Observed& observed;
  const BatchJob& job;
  std::vector<const BatchPodView*> pods;    // the pods of this Job; by index if it is Indexed
  std::vector<const BatchPodView*> active;  // neither over nor being deleted
  kube::Json status;                        // the status that will be written
  BatchJobPlan plan;

  UidSet uncounted_succeeded;  // status.uncountedTerminatedPods, in its stored form
  UidSet uncounted_failed;
  std::int32_t succeeded = 0;  // including those that are not counted yet
  std::int32_t failed = 0;
  std::int32_t ready = 0;
  std::int32_t active_count = 0;  // without those that this plan deletes
  std::int32_t terminating = 0;   // including them
  // These are for an Indexed Job.
  IndexSet counted_indexes;    // status.completedIndexes, in its stored form
  IndexSet succeeded_indexes;  // including new ones
  IndexSet failed_indexes;     // under backoffLimitPerIndex
  // These failed pods stay until their index has a new pod, which gets their counts.
  std::map<std::int32_t, const BatchPodView*> replaced;  // by index

  std::optional<Verdict> verdict;

  bool is_failed(const BatchPodView& pod) const;
  bool is_terminating(const BatchPodView& pod) const;
  // Returns whether the pod has the tracking finalizer, is not in `uncounted`, and has an index of
  // this Job (see Job::has_index()).
  bool is_new(const BatchPodView& pod, const UidSet& uncounted) const;

  void delete_pod(const BatchPodView& pod, int stage);
  // Removes the finalizer batch.kubernetes.io/job-tracking from the pod.
  void release(const BatchPodView& pod, int stage);
  void fail(std::string_view reason, std::string message);
  void succeed(std::string_view reason, std::string message);
  // Returns false if nothing changed. A condition that does not exist is not made False.
  bool set_condition(std::string_view type, bool is_true, std::string_view reason,
                     std::string_view message);
  // Plans an event that is recorded after the status.
  void report(std::string_view type, std::string_view reason, std::string_view message);
  // Plans an event of type Normal that is recorded after the actions.
  void note(std::string_view reason, std::string message);
};

}  // namespace trainer::batch
