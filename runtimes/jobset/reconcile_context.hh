// The policies of one reconcile of a JobSet share this context: the Jobs by state, the counters,
// the new status and the growing plan. Internal to runtimes/jobset.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/name_index.hh"
#include "runtimes/jobset/plan.hh"
#include "runtimes/lifecycle/reasons.hh"

namespace trainer::jobset {

// Every Job is in exactly one of these.
struct ChildJobs {
  std::vector<const JobView*> active;
  std::vector<const JobView*> successful;
  std::vector<const JobView*> failed;
  std::vector<const JobView*> previous;   // the Jobs of attempts before the current one
  std::vector<const JobView*> malformed;  // its labels do not say which attempt it belongs to
};

// This is one replicated job in this reconcile; by spec order.
struct ReplicatedJobState {
  const ReplicatedJob* spec = nullptr;
  const ReplicatedJobStatus* stored = nullptr;  // its entry in the stored status, if any
  std::int32_t replicas = 0;
  bool is_kept = false;  // the annotation kept-on-restart names it
  // This kept job serves others: some wait until it is ready, and none waits until it is complete.
  bool is_server = false;
  std::vector<std::int32_t> taken;  // indices whose Job name exists, of any attempt; sorted
  std::vector<std::int32_t> done;   // indices of Jobs that were complete and are gone; sorted
  std::int32_t current = 0;         // Jobs of the current attempt
  std::int32_t expired = 0;         // succeeded, and since removed by their own TTL
  ReplicatedJobStatus counters;

  // Returns whether every Job is ready or has been: InOrder and a dependency on Ready wait for
  // that.
  bool has_started() const {
    return counters.failed + counters.ready + counters.succeeded == replicas;
  }
};

// Returns whether its replicated jobs start one after the other.
bool is_in_order(const JobSet& jobset);

struct JobSetContext {
  explicit JobSetContext(const Observed& what);

  const Observed& observed;
  const JobSet& jobset;
  ChildJobs jobs;
  std::vector<ReplicatedJobState> rjobs;
  JobSetStatus status;  // starts as the stored one
  kube::Plan plan;
  std::int64_t failed_pods = 0;  // the failed pods of all Jobs, since they were created
  int job_stage = 0;             // the stage of creations that need what an earlier stage creates

  bool is_suspended() const { return jobset.spec.suspend.value_or(false); }
  bool is_in_order() const { return trainer::jobset::is_in_order(jobset); }
  // Returns the replicated job of that name, or nullptr. O(log n).
  ReplicatedJobState* find_rjob(std::string_view name);
  bool may_be_kept(const JobView& job);
  std::int64_t total_replicas() const;
  // Returns the number of restarts of single Jobs that count towards maxRestarts.
  std::int64_t counted_job_restarts() const;
  // Returns whether the plan can take another write of an existing Job. If it cannot, the next
  // reconcile follows at once.
  bool has_room();
  // Plans a merge patch of a Job, or its subresource, for the observed version.
  void patch_job(const JobView& job, std::string_view subresource, kube::Json patch);

  // The condition is set by JobSet's rules: no False condition is created, the transition time
  // stays if the status stays, and an event is queued if anything changed.
  void set_condition(std::string_view type, bool value, std::string_view reason,
                     std::string_view message);
  // Sets the condition ReplicaFailure, which exists only while it is true. `has_event` says that a
  // Warning event has reported it already.
  void set_replica_failure(const WaitingCause& cause, bool has_event);
  void clear_replica_failure();
  // Only the first few become events, since a thousand Jobs may have the same problem.
  void warn(std::string_view reason, std::string message);
  template <class First, class... Rest>
  void warn(std::string_view reason, fmt::format_string<First, Rest...> message, First&& first,
            Rest&&... rest) {
    warn(reason, fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
  }

 private:
  kube::NameIndex by_name_;  // the index of `rjobs`
};

}  // namespace trainer::jobset
