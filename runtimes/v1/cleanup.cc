// Deletes a job's children, and the finished job itself (pkg/controller.v1/common/job.go).
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/lifecycle/ttl.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

// A pod in a restart back-off would never end, and its logs would be lost if it were deleted. So it
// gets a deadline, by which the kubelet ends it.
void end_retries(V1JobContext& context, const V1PodView& pod) {
  if (pod.is_deleting || (pod.active_deadline && *pod.active_deadline <= 1)) return;
  context.patch(kube::kPods, pod.name,
                Json::object({{"spec", Json::object({{"activeDeadlineSeconds", 1}})}}),
                kBeforePods);
}

// The reconcile in which a job ends also removes the pods by which it was scaled down, unless a
// request fails then. An autoscaler goes on after the end, and the pods that it takes away may end
// by themselves.
void remove_running_surplus(V1JobContext& context) {
  const auto& elastic = context.job.spec.elasticPolicy;
  if (context.is_too_large || (elastic && elastic->metrics)) return;
  for (const V1PodView* pod : context.surplus)
    if (!pod->is_over()) context.remove_pod(*pod);
}

// Once all pods have ended nothing asks for their names. A TrainJob that follows the job under the
// same name needs this name for its own Service.
void remove_job_service(V1JobContext& context) {
  const bool has_ended = std::ranges::all_of(context.observed.pods,
                                             [](const V1PodView* pod) { return pod->is_over(); });
  for (const ServiceView& service : context.observed.services)
    if (has_ended && service.name == context.name()) context.remove_service(service);
}

std::optional<kube::Time> finish_time(const JobStatus& status) {
  if (status.completionTime) return status.completionTime;
  // A job that failed by an exit code has no completionTime.
  for (const JobCondition& condition : status.conditions)
    if ((condition.type == kFailed || condition.type == kSucceeded) && condition.is_true())
      return condition.lastTransitionTime;
  return std::nullopt;
}

}  // namespace

std::string_view clean_pod_policy(const JobSpec& spec) {
  if (spec.runPolicy.cleanPodPolicy) return *spec.runPolicy.cleanPodPolicy;
  return spec.cleanPodPolicy ? std::string_view(*spec.cleanPodPolicy) : "None";
}

void remove_children(V1JobContext& context) {
  for (const V1PodView* pod : context.observed.pods) context.remove_pod(*pod);
  for (const ServiceView& service : context.observed.services) context.remove_service(service);
}

void clean_up_finished(V1JobContext& context) {
  remove_pod_group(context);
  const std::string_view policy = clean_pod_policy(context.job.spec);
  if (policy != "None" && policy != "Running") return remove_children(context);
  const bool ends_retries = is_out_of_retries(context.status);
  std::set<std::string_view> kept;
  for (const V1PodView* pod : context.observed.pods) {
    // With cleanPodPolicy Running, a pod that failed and runs again is ended as well; with None it
    // is
    // left alone.
    const bool is_retrying = ends_retries && !pod->is_over() &&
                             (policy == "None" ? pod->is_backing_off : pod->has_failed_last);
    if (is_retrying) end_retries(context, *pod);
    if (policy == "None" || pod->is_over() || is_retrying)
      kept.insert(pod->name);
    else
      context.remove_pod(*pod);
  }
  if (policy == "None") {
    remove_running_surplus(context);
    return remove_job_service(context);
  }
  for (const ServiceView& service : context.observed.services)
    if (!kept.contains(service.name)) context.remove_service(service);
}

void expire(V1JobContext& context) {
  const auto& ttl = context.job.spec.runPolicy.ttlSecondsAfterFinished;
  const auto finished = finish_time(context.status);
  if (!ttl || !finished || context.job.is_suspended()) return;
  auto removal = trainer::expire(context.plan, context.framework.resource, context.job.metadata,
                                 finished->after(*ttl), context.observed.now);
  if (!removal) return;
  const std::string noun(context.framework.deleted_noun);
  removal->failure_reason = "FailedDelete" + noun;
  removal->propagation = "Background";
  context.plan.actions.push_back(*std::move(removal));
  context.note("Normal", "SuccessfulDelete" + noun, "Deleted job: " + context.name());
  context.plan.counts.deleted = true;
}

}  // namespace trainer::v1
