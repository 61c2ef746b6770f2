#include "runtimes/trainjob/needed_events.hh"

#include <algorithm>
#include <vector>

#include "kube/model/resources.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/lifecycle/waits.hh"
#include "runtimes/trainjob/phase.hh"

namespace trainer {
namespace {

kube::Time waits_since(const TrainJobObserved& observed, const TrainJobStatus& after,
                       const JobSet* jobset) {
  std::vector<const kube::Condition*> conditions;
  for (const kube::Condition& condition : after.conditions) conditions.push_back(&condition);
  if (jobset) conditions.push_back(restarting_condition(*jobset));
  return trainer::waits_since(jobset ? jobset->metadata.creation_timestamp : std::nullopt,
                              conditions, observed.now);
}

// A refusal of pods is an event of their Job. If no pods are refused, a pod that waits may have an
// event. Events about a JobSet come from another JobSet controller: this program's own sets a
// condition.
std::optional<kube::EventSource> source_of(const TrainJobObserved& observed,
                                           const JobView* job_without_pods) {
  if (job_without_pods) return kube::EventSource{kube::kJobs.kind, job_without_pods->name};
  for (const PodView* pod : observed.pods)
    if (pod->phase == "Pending" && !pod->is_deleting)
      return kube::EventSource{kube::kPods.kind, pod->name};
  if (!observed.jobs.empty())
    return kube::EventSource{kube::kJobs.kind, observed.jobs.front()->name};
  if (observed.is_jobset_controller_active) return std::nullopt;
  return kube::EventSource{kJobSets.kind, observed.job.metadata.name};
}

// A Job controller or a scheduler that has not processed this job yet has made no events about it.
// The scheduler's first message is on the pod. The kubelet reports in events what the scheduler
// cannot know.
bool has_anything_started(const TrainJobObserved& observed) {
  if (observed.jobs.empty()) return true;
  if (observed.pods.empty()) return observed.have_jobs_started();
  return std::any_of(observed.pods.begin(), observed.pods.end(),
                     [](const PodView* pod) { return !pod->node_name.empty(); });
}

bool is_job_to_start(const TrainJobObserved& observed) {
  return observed.jobs.empty() ||
         std::any_of(observed.jobs.begin(), observed.jobs.end(), [](const JobView* job) {
           return !job->has_start_time && !job->is_suspended && !job->is_deleting;
         });
}

}  // namespace

NeededEvents needed_events(const TrainJobObserved& observed, const TrainJobStatus& after,
                           const JobSet* jobset, const JobView* job_without_pods) {
  const auto source = source_of(observed, job_without_pods);
  const auto waited = observed.now - waits_since(observed, after, jobset);
  const bool is_begun = job_without_pods || has_anything_started(observed);
  const auto delay = is_begun ? kube::kEventDelay : kube::kEventInterval;
  if (source && waited >= delay) return {source, kube::kEventInterval};
  // A pod shows that a scheduler or kubelet has begun with it. No change that would start a
  // reconcile shows that the Job controller has begun with a Job.
  const auto next = is_job_to_start(observed) ? kube::kEventDelay : delay;
  return {std::nullopt, waited < next ? next - waited : next};
}

}  // namespace trainer
