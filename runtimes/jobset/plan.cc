// A reconcile of a JobSet applies its rules in the order of JobSet,
// pkg/controllers/jobset_controller.go.
#include "runtimes/jobset/plan.hh"

#include <algorithm>
#include <utility>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/disruption.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

bool is_owned(const Observed& observed) {
  const JobSet& jobset = observed.jobset;
  return !jobset.metadata.deletion_timestamp &&
         (observed.is_managed_here || !jobset.spec.managedBy ||
          *jobset.spec.managedBy == kJobSetControllerName);
}

void end_restart_when_ready(JobSetContext& context) {
  if (context.is_suspended()) return;
  std::int64_t ready = 0;
  for (const ReplicatedJobState& rjob : context.rjobs)
    ready += rjob.counters.ready + rjob.counters.succeeded;
  if (ready == context.total_replicas()) {
    context.set_condition(kRestarting, false, "JobsReady", "all jobs are ready");
  }
}

void run(JobSetContext& context) {
  finish_classifying(context);
  count_jobs(context);
  if (is_finished(context.jobset.status)) {
    clean_up_finished(context);
    expire(context);
    return;
  }
  delete_jobs(context, context.jobs.previous);
  keep_jobs(context);
  end_restart_when_ready(context);
  if (!context.jobs.failed.empty()) {
    apply_failure_policy(context);
    return;
  }
  if (apply_success_policy(context)) return;
  ensure_claims(context);
  if (!context.plan.needs_objects.empty()) return;  // the rest would be planned twice
  resize_jobs(context);
  if (context.is_suspended()) {
    suspend_jobs(context);
  } else if (!begin_attempt(context)) {
    ensure_service(context);
    create_jobs(context);
    resume_jobs(context);
  }
  track_in_place_restarts(context);
}

void plan_by(JobSetContext& context) {
  run(context);
  if (!context.jobset.spec.volumeClaimPolicies.empty()) read_claims_of_new_pods(context);
  context.plan.read_stamp.failures = context.failed_pods;
  if (!context.plan.needs_objects.empty()) {
    kube::Plan needs;
    needs.needs_objects = std::move(context.plan.needs_objects);
    needs.read_stamp = context.plan.read_stamp;
    context.plan = std::move(needs);
    return;
  }
  report_refusals(context);
  finish_status(context);
}

}  // namespace

kube::Plan plan(const Observed& observed) {
  if (!is_owned(observed)) return {};
  JobSetContext context(observed);
  classify_jobs(context, observed.jobs);
  plan_by(context);
  return std::move(context.plan);
}

SlicedPlan::SlicedPlan(const Observed& observed)
    : context_(std::make_unique<JobSetContext>(observed)) {}
SlicedPlan::~SlicedPlan() = default;

void SlicedPlan::add(std::span<const JobView* const> jobs) {
  classify_jobs(*context_, jobs);
}

kube::Plan SlicedPlan::finish() {
  if (!is_owned(context_->observed)) return {};
  plan_by(*context_);
  return std::move(context_->plan);
}

bool needs_pods(const JobSet& jobset, const Gates& gates, std::span<const JobView* const> jobs) {
  return restarts_in_place(jobset, gates) || max_disruption_restarts(jobset) > 0 ||
         std::any_of(jobs.begin(), jobs.end(), [](const JobView* job) { return job->failure(); });
}

}  // namespace trainer::jobset
