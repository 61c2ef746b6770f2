#include "runtimes/trainjob/elastic.hh"

#include <fmt/format.h>

#include <utility>

#include "runtimes/jobset/elastic.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/trainjob/conditions.hh"
#include "runtimes/views/labels.hh"

namespace trainer {

using kube::Json;

namespace {

// A merge patch replaces a list as a whole. So it may only be applied to the JobSet that was read.
kube::Action resize(const JobSet& jobset, const Json& object, std::size_t job, std::int32_t nodes) {
  Json jobs = object.get("spec").get("replicatedJobs");
  Json& spec = jobs.as_array()[job]["template"]["spec"];
  spec.set("parallelism", nodes);
  spec.set("completions", nodes);
  Json metadata =
      Json::object({{"uid", jobset.metadata.uid},
                    {"resourceVersion", object.get("metadata").get_string("resourceVersion")}});
  return {.verb = kube::Action::Verb::kMergePatch,
          .resource = kJobSets,
          .key = jobset.metadata.key(),
          .body = Json::object({{"metadata", std::move(metadata)},
                                {"spec", Json::object({{"replicatedJobs", std::move(jobs)}})}})};
}

}  // namespace

void settle_elastic(const TrainJobObserved& observed, const JobSet* jobset, TrainJobStatus& status,
                    TrainJobPlan& plan) {
  status.elastic.reset();
  if (!jobset || is_finished(status) || !observed.is_jobset_controller_active) return;
  const auto bounds = jobset::elastic_nodes(*jobset);
  const auto job = bounds ? jobset::elastic_job(*jobset) : std::nullopt;
  // Kueue has given the quota of so many nodes as the job began with.
  const bool is_queued = bounds && !queue_of(observed.job.metadata.labels).empty();
  if (!job || (is_queued && bounds->least != bounds->most)) return;
  const ReplicatedJob& trainer = jobset->spec.replicatedJobs[*job];
  status.elastic.emplace();
  status.elastic->minNodes = bounds->least;
  status.elastic->maxNodes = bounds->most;
  status.elastic->selector =
      fmt::format("{}={},{}={}", jobset::kJobSetNameKey, jobset->metadata.name,
                  jobset::kReplicatedJobNameKey, trainer.name);
  // A suspended JobSet is written as a whole.
  const bool is_running = !observed.job.is_suspended() && !jobset->spec.suspend.value_or(false) &&
                          !jobset->metadata.deletion_timestamp;
  const auto& wanted = observed.job.spec.trainer;
  if (!is_running || !observed.jobset_object || !wanted || !wanted->numNodes) return;
  const std::int32_t nodes = *wanted->numNodes;
  if (nodes < bounds->least || nodes > bounds->most ||
      jobset::job_number(trainer, "parallelism") == nodes)
    return;
  plan.actions.push_back(resize(*jobset, *observed.jobset_object, *job, nodes));
}

}  // namespace trainer
