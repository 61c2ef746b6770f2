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

// Kueue has given the quota of so many nodes as the job began with.
bool is_queued(const TrainJob& job) {
  const auto queue = job.metadata.labels.find(kQueueLabel);
  return queue != job.metadata.labels.end() && !queue->second.empty();
}

}  // namespace

std::optional<ElasticStatus> elastic_status(const TrainJobObserved& observed, const JobSet& jobset,
                                            const TrainJobStatus& status) {
  const auto nodes = jobset::elastic_nodes(jobset);
  if (!nodes || is_finished(status) || !observed.is_jobset_controller_active) return std::nullopt;
  const auto job = jobset::elastic_job(jobset);
  if (!job || (is_queued(observed.job) && nodes->least != nodes->most)) return std::nullopt;
  ElasticStatus elastic;
  elastic.minNodes = nodes->least;
  elastic.maxNodes = nodes->most;
  elastic.selector =
      fmt::format("{}={},{}={}", jobset::kJobSetNameKey, jobset.metadata.name,
                  jobset::kReplicatedJobNameKey, jobset.spec.replicatedJobs[*job].name);
  return elastic;
}

std::optional<kube::Action> resize_jobset(const TrainJobObserved& observed) {
  // The API server refuses another number before the status says that the job is elastic.
  if (!observed.job.status.elastic) return std::nullopt;
  const JobSet& jobset = *observed.jobset;
  const auto bounds = jobset::elastic_nodes(jobset);
  const auto& trainer = observed.job.spec.trainer;
  if (!bounds || !trainer || !trainer->numNodes || !observed.is_jobset_controller_active ||
      !observed.jobset_object)
    return std::nullopt;
  const std::int32_t nodes = *trainer->numNodes;
  const auto at = jobset::elastic_job(jobset);
  if (nodes < bounds->least || nodes > bounds->most || !at ||
      jobset::job_number(jobset.spec.replicatedJobs[*at], "parallelism") == nodes)
    return std::nullopt;
  // A merge patch replaces a list as a whole. So it may only be applied to the JobSet that was
  // read.
  Json jobs = observed.jobset_object->get("spec").get("replicatedJobs");
  Json& spec = jobs.as_array()[*at]["template"]["spec"];
  spec.set("parallelism", nodes);
  spec.set("completions", nodes);
  const Json& stored = observed.jobset_object->get("metadata");
  kube::Action action;
  action.verb = kube::Action::Verb::kMergePatch;
  action.resource = kJobSets;
  action.key = jobset.metadata.key();
  action.body = Json::object(
      {{"metadata", Json::object({{"uid", jobset.metadata.uid},
                                  {"resourceVersion", stored.get_string("resourceVersion")}})},
       {"spec", Json::object({{"replicatedJobs", std::move(jobs)}})}});
  return action;
}

}  // namespace trainer
