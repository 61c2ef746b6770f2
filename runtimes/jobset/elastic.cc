// The sizes of Jobs follow the JobSet here (JobSet, pkg/controllers), gate ElasticJobSet.
#include <utility>

#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void resize_jobs(JobSetContext& context) {
  for (const JobView* job : context.jobs.active) {
    const ReplicatedJobState* rjob = context.find_rjob(job->replicated_job);
    if (!rjob || job->is_deleting) continue;
    const auto parallelism = job_number(*rjob->spec, "parallelism");
    const auto completions = job_number(*rjob->spec, "completions");
    // Only a pair of equal numbers can be changed in an Indexed Job.
    if (!parallelism || parallelism != completions) continue;
    if (job->parallelism == parallelism && job->completions == completions) continue;
    if (!context.has_room()) return;
    kube::Json spec =
        kube::Json::object({{"parallelism", *parallelism}, {"completions", *completions}});
    context.patch_job(*job, "", kube::Json::object({{"spec", std::move(spec)}}));
  }
}

}  // namespace trainer::jobset
