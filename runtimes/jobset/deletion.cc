// Deletions of Jobs: jobset-contract 3.10 and 3.11.
#include <utility>

#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void delete_jobs(Pass& pass, const std::vector<const JobView*>& jobs) {
  for (const JobView* job : jobs) {
    if (job->is_deleting) continue;
    Action action;
    action.verb = Action::Verb::kDelete;
    action.resource = kJobs;
    action.key = {pass.jobset.metadata.ns, job->name};
    // Foreground: the name is free again only when the last pod is gone, so attempts never overlap.
    action.propagation = "Foreground";
    // Never the Job of the next attempt that took over the name meanwhile.
    action.uid = job->uid;
    pass.plan.actions.push_back(std::move(action));
  }
}

void clean_up_finished(Pass& pass) {
  // Finished Jobs are kept: they are the record of what happened. Jobs of an earlier attempt are
  // left here only when a controller died between counting a restart and deleting them.
  delete_jobs(pass, pass.jobs.active);
  delete_jobs(pass, pass.jobs.previous);
  std::vector<const JobView*> running;
  for (const JobView* job : pass.jobs.malformed) {
    if (!job->finished) running.push_back(job);
  }
  delete_jobs(pass, running);
}

}  // namespace trainer::jobset
