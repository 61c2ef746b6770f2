// The policies in the order in which a pass asks them (plan.cc); one file each. Internal to
// runtimes/jobset. Section numbers are those of the JobSet contract.
#pragma once

#include <string>
#include <string_view>

#include "runtimes/jobset/pass.hh"

namespace trainer::jobset {

// buckets.cc (3.3): fills pass.jobs and what the waves know of existing Jobs.
void sort_jobs(Pass& pass);

// status.cc (4): the counters of every wave, and at the end the patch.
void count_jobs(Pass& pass);
void finish_status(Pass& pass);

// deletion.cc (3.10, 3.11)
void delete_jobs(Pass& pass, const std::vector<const JobView*>& jobs);
void clean_up_finished(Pass& pass);

// ttl.cc (3.10): removes the finished JobSet, or asks to be called again in time.
void expire(Pass& pass);

// failure.cc (3.6): decides about the earliest failure. Call it where pass.jobs.failed has any.
void apply_failure_policy(Pass& pass);

// restart.cc (3.6): what failing and restarting do to the status.
void fail(Pass& pass, std::string_view reason, std::string_view message);
// Every Job, the succeeded ones too. `reason` and `message` are the condition's.
void restart_all(Pass& pass, bool is_counted, std::string_view reason, std::string_view message);
// Just this Job (gate RestartJob). False where its labels do not say which one it is.
bool restart_one(Pass& pass, const JobView& job, bool is_counted);
// Whether another counted restart would exceed maxRestarts.
bool is_budget_spent(const Pass& pass);

// success.cc (3.5): true when the JobSet has completed in this pass.
bool apply_success_policy(Pass& pass);

// service.cc (2.3) and claims.cc (2.4)
void ensure_service(Pass& pass);
void ensure_claims(Pass& pass);

// elastic.cc (3.9, gate ElasticJobSet)
void resize_jobs(Pass& pass);

// depends_on.cc (3.4): whether all that this wave waits for is there. Only waves before it count.
bool are_dependencies_met(Pass& pass, const Wave& wave);

// startup.cc (3.4): creates the missing Jobs, in order.
void create_jobs(Pass& pass);
void start_in_order(Pass& pass);  // StartupPolicyInProgress
void end_in_order(Pass& pass);    // StartupPolicyCompleted

// suspend.cc (3.7)
void suspend_jobs(Pass& pass);
void resume_jobs(Pass& pass);

// in_place_restart.cc (3.8, gate InPlaceRestart)
bool restarts_in_place(const JobSet& jobset, const Gates& gates);
void track_in_place_restarts(Pass& pass);

}  // namespace trainer::jobset
