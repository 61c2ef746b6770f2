// One pass over a JobSet, in the order of jobset-contract 3.2.
#include "runtimes/jobset/plan.hh"

#include <utility>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/disruption.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

bool is_ours(const Observed& observed) {
  const JobSet& jobset = observed.jobset;
  return !jobset.metadata.deletion_timestamp &&
         (observed.is_managed_here || !jobset.spec.managedBy ||
          *jobset.spec.managedBy == kReservedManager);
}

void end_restart_when_ready(Pass& pass) {
  if (pass.is_suspended()) return;
  std::int64_t ready = 0;
  for (const Wave& wave : pass.waves) ready += wave.counters.ready + wave.counters.succeeded;
  if (ready == pass.total_replicas()) {
    pass.set_condition(kRestarting, false, "JobsReady", "all jobs are ready");
  }
}

void run(Pass& pass) {
  sort_jobs(pass);
  count_jobs(pass);
  if (is_finished(pass.jobset.status)) {
    clean_up_finished(pass);
    expire(pass);
    return;
  }
  delete_jobs(pass, pass.jobs.previous);
  end_restart_when_ready(pass);
  if (!pass.jobs.failed.empty()) {
    apply_failure_policy(pass);
    return;
  }
  if (apply_success_policy(pass)) return;
  ensure_claims(pass);
  if (pass.observed.gates.elastic_jobset) resize_jobs(pass);
  if (pass.is_suspended()) {
    suspend_jobs(pass);
  } else {
    ensure_service(pass);
    create_jobs(pass);
    resume_jobs(pass);
  }
  track_in_place_restarts(pass);
}

}  // namespace

Plan plan(const Observed& observed) {
  if (!is_ours(observed)) return {};
  Pass pass(observed);
  run(pass);
  finish_status(pass);
  return std::move(pass.plan);
}

bool needs_pods(const JobSet& jobset, const Gates& gates) {
  return restarts_in_place(jobset, gates) || max_disruption_restarts(jobset) > 0;
}

}  // namespace trainer::jobset
