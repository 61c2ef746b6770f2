// The policies in the order in which a pass asks them (plan.cc); one file each. Internal to
// runtimes/jobset. Section numbers are those of the JobSet contract.
#pragma once

#include <string>
#include <string_view>

#include "runtimes/jobset/reconcile_context.hh"

namespace trainer::jobset {

// buckets.cc (3.3): fills pass.jobs and what the waves know of existing Jobs.
void sort_jobs(ReconcileContext& context);

// status.cc (4): the counters of every wave, and at the end the patch.
void count_jobs(ReconcileContext& context);
void finish_status(ReconcileContext& context);

// deletion.cc (3.10, 3.11)
void delete_jobs(ReconcileContext& context, const std::vector<const JobView*>& jobs);
void clean_up_finished(ReconcileContext& context);

// ttl.cc (3.10): removes the finished JobSet, or asks to be called again in time.
void expire(ReconcileContext& context);

// failure.cc (3.6): decides about the earliest failure. Call it where pass.jobs.failed has any.
void apply_failure_policy(ReconcileContext& context);

// restart.cc (3.6): what failing and restarting do to the status.
void fail(ReconcileContext& context, std::string_view reason, std::string_view message);
// Every Job, the succeeded ones too. `reason` and `message` are the condition's.
void restart_all(ReconcileContext& context, bool is_counted, std::string_view reason,
                 std::string_view message);
// Just this Job (gate RestartJob). False where its labels do not say which one it is.
bool restart_one(ReconcileContext& context, const JobView& job, bool is_counted);
// Whether another counted restart would exceed maxRestarts.
bool is_budget_spent(const ReconcileContext& context);

// success.cc (3.5): true when the JobSet has completed in this pass.
bool apply_success_policy(ReconcileContext& context);

// service.cc (2.3) and claims.cc (2.4)
void ensure_service(ReconcileContext& context);
void ensure_claims(ReconcileContext& context);

// elastic.cc (3.9, gate ElasticJobSet)
void resize_jobs(ReconcileContext& context);

// depends_on.cc (3.4): whether all that this wave waits for is there. Only waves before it count.
bool are_dependencies_met(ReconcileContext& context, const ReplicatedJobState& rjob);

// startup.cc (3.4): creates the missing Jobs, in order.
void create_jobs(ReconcileContext& context);
void start_in_order(ReconcileContext& context);  // StartupPolicyInProgress
void end_in_order(ReconcileContext& context);    // StartupPolicyCompleted

// suspend.cc (3.7)
void suspend_jobs(ReconcileContext& context);
void resume_jobs(ReconcileContext& context);

// in_place_restart.cc (3.8, gate InPlaceRestart)
bool restarts_in_place(const JobSet& jobset, const Gates& gates);
void track_in_place_restarts(ReconcileContext& context);

}  // namespace trainer::jobset
