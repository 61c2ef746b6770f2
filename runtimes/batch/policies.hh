// These are the policies in the order in which a reconcile applies them (plan.cc); each has a file.
// Internal to runtimes/batch.
#pragma once

#include <chrono>
#include <string>

#include "runtimes/batch/context.hh"

namespace trainer::batch {

// pod_failure_policy.cc
struct PolicyMatch {
  bool is_counted = true;  // counted against backoffLimit
  bool fails_index = false;
  std::string job_failure;  // the message if a rule fails the Job, else ""
};
PolicyMatch match_pod_failure_policy(const BatchJob& job, const BatchPodView& pod);

// backoff.cc
Backoff update_backoff(const Context& context);
// Returns how long from now until the next pod is made; `last` is the time when the last failed one
// ended.
std::chrono::microseconds remaining_backoff(std::int64_t failures, kube::Time last, kube::Time now);
std::chrono::microseconds remaining_backoff(const Backoff& backoff, kube::Time now);

// indexes.cc: Indexed Jobs, and backoffLimitPerIndex
void read_indexes(Context& context);
// Returns whether the pod's finalizer may be removed: the Job has a verdict, or the pod has ended
// and no new pod of its index gets its counts.
bool can_release(const Context& context, const BatchPodView& pod);
// Returns those of `indexes` that may get a pod now; if there is none, the plan says when one may.
std::vector<std::int32_t> ready_indexes(Context& context, const std::vector<std::int32_t>& indexes);
// Sets annotations of the pod of an index: the failures that the one before it had, and its own.
void set_failure_counts(const Context& context, std::int32_t index, kube::Json& pod);

// verdict.cc: sets Context::verdict if the Job has failed or is complete.
void decide(Context& context);
void decide_completion(Context& context);
// success_policy.cc: returns the message if a rule is met, else "".
std::string match_success_policy(const Context& context);

// suspend.cc
void sync_suspension(Context& context);

// manage.cc: decides how many pods there are
void delete_active_pods(Context& context);
void manage_pods(Context& context);

// construct.cc
kube::Json make_pod(const Context& context, std::optional<std::int32_t> index);

// tracking.cc: decides what is counted, and removes the finalizers of pods
void count_pods(Context& context);
void track_pods(Context& context);

// finish.cc
void write_verdict(Context& context);
void expire(Context& context);  // ttlSecondsAfterFinished

}  // namespace trainer::batch
