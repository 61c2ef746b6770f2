// Deletions of Jobs (JobSet, pkg/controllers).
#include "kube/model/resources.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void delete_jobs(ReconcileContext& context, const std::vector<const JobView*>& jobs) {
  for (const JobView* job : jobs) {
    if (job->is_deleting) continue;
    if (!context.has_room()) return;
    // By uid: never the Job of the next attempt that took over the name meanwhile. Foreground: the
    // name is free again only when the last pod is gone, so attempts never overlap.
    context.plan.actions.push_back({.verb = kube::Action::Verb::kDelete,
                                    .resource = kube::kJobs,
                                    .key = {context.jobset.metadata.ns, job->name},
                                    .uid = job->uid,
                                    .propagation = "Foreground"});
  }
}

void clean_up_finished(ReconcileContext& context) {
  // Finished Jobs are kept: they are the record of what happened. Jobs of an earlier attempt are
  // left here only when a controller died between counting a restart and deleting them.
  delete_jobs(context, context.jobs.active);
  delete_jobs(context, context.jobs.previous);
  std::vector<const JobView*> running;
  for (const JobView* job : context.jobs.malformed) {
    if (!job->finished) running.push_back(job);
  }
  delete_jobs(context, running);
}

}  // namespace trainer::jobset
