// The sizes of Jobs follow the JobSet here (JobSet, pkg/controllers).
#include "runtimes/jobset/elastic.hh"

#include <string_view>
#include <utility>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/policies.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/text.hh"

namespace trainer::jobset {

std::optional<ElasticNodes> elastic_nodes(const JobSet& jobset) {
  const auto at = jobset.metadata.annotations.find(kElasticNodesKey);
  if (at == jobset.metadata.annotations.end()) return std::nullopt;
  const kube::OwnerReference* owner = jobset.metadata.controller();
  if (!owner || owner->kind != kTrainJobs.kind || owner->api_version != kTrainJobs.api_version())
    return std::nullopt;
  const std::string_view text = at->second;
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const auto least = parse_unsigned(text.substr(0, colon));
  const auto most = parse_unsigned(text.substr(colon + 1));
  if (!least || !most || *least < 1 || *least > *most) return std::nullopt;
  return ElasticNodes{*least, *most};
}

std::optional<std::size_t> elastic_job(const JobSet& jobset) {
  const auto& jobs = jobset.spec.replicatedJobs;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (ancestor_of(jobs[i]) == "trainer") return i;
  return std::nullopt;
}

bool may_resize(const JobSet& jobset, std::size_t job, std::optional<std::int64_t> nodes,
                const Gates& gates) {
  if (gates.elastic_jobset) return true;
  const auto bounds = elastic_nodes(jobset);
  return bounds && nodes && elastic_job(jobset) == job && bounds->least <= *nodes &&
         *nodes <= bounds->most;
}

void resize_jobs(JobSetContext& context) {
  const Gates& gates = context.observed.gates;
  if (!gates.elastic_jobset && !elastic_nodes(context.jobset)) return;
  for (const JobView* job : context.jobs.active) {
    const ReplicatedJobState* rjob = context.find_rjob(job->replicated_job);
    if (!rjob || job->is_deleting) continue;
    const auto parallelism = job_number(*rjob->spec, "parallelism");
    const auto completions = job_number(*rjob->spec, "completions");
    // Only a pair of equal numbers can be changed in an Indexed Job.
    if (!parallelism || parallelism != completions) continue;
    if (job->parallelism == parallelism && job->completions == completions) continue;
    const auto at =
        static_cast<std::size_t>(rjob->spec - context.jobset.spec.replicatedJobs.data());
    if (!may_resize(context.jobset, at, parallelism, gates)) continue;
    if (!context.has_room()) return;
    kube::Json spec =
        kube::Json::object({{"parallelism", *parallelism}, {"completions", *completions}});
    context.patch_job(*job, "", kube::Json::object({{"spec", std::move(spec)}}));
  }
}

}  // namespace trainer::jobset
