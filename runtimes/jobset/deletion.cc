// Jobs are deleted here (JobSet, pkg/controllers).
#include "kube/model/resources.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void delete_jobs(JobSetContext& context, const std::vector<const JobView*>& jobs) {
  for (const JobView* job : jobs) {
    if (job->is_deleting) continue;
    if (!context.has_room()) return;
    // The Job is deleted by uid, so that it is never the next attempt's Job of the same name.
    // Foreground deletion frees the name only when the last pod is gone, so attempts never overlap.
    context.plan.actions.push_back({.verb = kube::Action::Verb::kDelete,
                                    .resource = kube::kJobs,
                                    .key = {context.jobset.metadata.ns, job->name},
                                    .uid = job->uid,
                                    .propagation = "Foreground"});
  }
}

void clean_up_finished(JobSetContext& context) {
  // Finished Jobs are kept, since they show what happened. Jobs of an earlier attempt are still
  // here only if a controller ended between counting a restart and deleting them.
  delete_jobs(context, context.jobs.active);
  delete_jobs(context, context.jobs.previous);
  std::vector<const JobView*> running;
  for (const JobView* job : context.jobs.malformed) {
    if (!job->finished) running.push_back(job);
  }
  delete_jobs(context, running);
}

}  // namespace trainer::jobset
