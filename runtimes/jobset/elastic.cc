// Sizes that follow the JobSet: jobset-contract 3.9, gate ElasticJobSet.
#include <utility>

#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void resize_jobs(Pass& pass) {
  for (const JobView* job : pass.jobs.active) {
    const Wave* wave = pass.find_wave(job->replicated_job);
    if (!wave || job->is_deleting) continue;
    const auto parallelism = job_number(*wave->spec, "parallelism");
    const auto completions = job_number(*wave->spec, "completions");
    // Only a pair of equal numbers can be changed in an Indexed Job.
    if (!parallelism || parallelism != completions) continue;
    if (job->parallelism == parallelism && job->completions == completions) continue;
    Action action;
    action.verb = Action::Verb::kMergePatch;
    action.resource = kJobs;
    action.key = {pass.jobset.metadata.ns, job->name};
    action.body = kube::Json::object(
        {{"metadata", kube::Json::object({{"resourceVersion", job->resource_version}})},
         {"spec",
          kube::Json::object({{"parallelism", *parallelism}, {"completions", *completions}})}});
    pass.plan.actions.push_back(std::move(action));
  }
}

}  // namespace trainer::jobset
