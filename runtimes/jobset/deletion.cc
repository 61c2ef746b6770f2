// Deletions of Jobs (JobSet, pkg/controllers).
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void delete_jobs(ReconcileContext& context, const std::vector<const JobView*>& jobs) {
  for (const JobView* job : jobs) {
    if (job->is_deleting) continue;
    if (!context.has_room()) return;
    kube::Action action;
    action.verb = kube::Action::Verb::kDelete;
    action.resource = kube::kJobs;
    action.key = {context.jobset.metadata.ns, job->name};
    // Foreground: the name is free again only when the last pod is gone, so attempts never overlap.
    action.propagation = "Foreground";
    // Never the Job of the next attempt that took over the name meanwhile.
    action.uid = job->uid;
    context.plan.actions.push_back(std::move(action));
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
