// These are the policies in the order in which a reconcile applies them (plan.cc); each has a file.
// Internal to runtimes/jobset.
#pragma once

#include <span>
#include <string_view>

#include "runtimes/jobset/reconcile_context.hh"

namespace trainer::jobset {

// child_jobs.cc: puts Jobs into the lists of context.jobs and of their replicated jobs, any number
// of times. finish_classifying() is then called once, and adds the Jobs that are gone.
void classify_jobs(JobSetContext& context, std::span<const JobView* const> jobs);
void finish_classifying(JobSetContext& context);

// status.cc: counts the Jobs of every replicated job, and makes the patch at the end.
void count_jobs(JobSetContext& context);
void finish_status(JobSetContext& context);

// deletion.cc
void delete_jobs(JobSetContext& context, const std::vector<const JobView*>& jobs);
void clean_up_finished(JobSetContext& context);

// ttl.cc: removes the finished JobSet, or asks for a reconcile in time.
void expire(JobSetContext& context);

// execution_attempts.cc: notes that a JobSet which is not suspended runs. Returns true if it was
// suspended: the status must have the number of this run before any Job gets it.
bool begin_attempt(JobSetContext& context);

// failure.cc: decides about the earliest failure. Call it only if context.jobs.failed has any.
void apply_failure_policy(JobSetContext& context);

// Returns whether all pods of a Job are ready or have succeeded.
bool is_job_ready(const JobView& job);

// restart.cc: changes the status when a JobSet fails or restarts.
void fail(JobSetContext& context, std::string_view reason, std::string_view message);
// Restarts every Job, the succeeded ones too. `reason` and `message` are the condition's.
void restart_all(JobSetContext& context, bool is_counted, std::string_view reason,
                 std::string_view message);
// Restarts only this Job (gate RestartJob). Returns false if its labels do not say which one it is.
bool restart_one(JobSetContext& context, const JobView& job, bool is_counted);
// Records the node that caused the first failure, if a node did. Call it before the restart of that
// failure is counted.
void record_avoided_node(JobSetContext& context, const JobView& first);
// Sets is_kept and is_server of the replicated jobs that the annotation kept-on-restart names.
void mark_kept_jobs(JobSetContext& context);
// Returns whether this Job of an earlier attempt is kept for the current one: it is complete, or it
// is ready and others only wait for that (ReplicatedJobState::is_server).
bool is_kept(const ReplicatedJobState& rjob, const JobView& job);
// Gives such Jobs the label of the current attempt, so that they stay in it.
void keep_jobs(JobSetContext& context);
// Returns whether another counted restart would exceed maxRestarts.
bool is_budget_spent(const JobSetContext& context);

// success.cc: returns true if the JobSet has completed in this reconcile.
bool apply_success_policy(JobSetContext& context);

// service.cc and claims.cc
void ensure_service(JobSetContext& context);
void ensure_claims(JobSetContext& context);
// A user may have deleted claims that new pods mount: they are read again before pods are started.
void read_claims_of_new_pods(JobSetContext& context);

// elastic.cc (gate ElasticJobSet, and JobSets of elastic TrainJobs)
void resize_jobs(JobSetContext& context);

// depends_on.cc: returns whether all that this replicated job waits for exists. Only those before
// it count.
bool are_dependencies_met(JobSetContext& context, const ReplicatedJobState& rjob);

// startup.cc: creates the missing Jobs, in order.
void create_jobs(JobSetContext& context);
void start_in_order(JobSetContext& context);  // StartupPolicyInProgress

// suspend.cc
void suspend_jobs(JobSetContext& context);
void resume_jobs(JobSetContext& context);

// refusals.cc: sets the condition ReplicaFailure when all else is planned.
void report_refusals(JobSetContext& context);

// in_place_restart.cc (gate InPlaceRestart)
bool restarts_in_place(const JobSet& jobset, const Gates& gates);
void track_in_place_restarts(JobSetContext& context);

}  // namespace trainer::jobset
