// PodGroups of Kubernetes (k8s.io/api/scheduling/v1beta1), which 1.37 serves with the feature gate
// GenericWorkload. Versions before it serve alpha versions, each one of another shape.
#include <utility>

#include "runtimes/gang/gang_scheduler.hh"

namespace trainer::gang {
namespace {

kube::Json workload_spec(const GroupRequest& request) {
  using kube::Json;
  Json gang = Json::object({{"minCount", request.min_member}});
  Json spec = Json::object({{"schedulingPolicy", Json::object({{"gang", std::move(gang)}})}});
  // The loss of one pod stops the others, so preemption takes all, or looks elsewhere.
  spec.set("disruptionMode", Json::object({{"all", Json::object()}}));
  if (!request.priority_class.empty()) spec.set("priorityClassName", request.priority_class);
  return spec;
}

}  // namespace

const GangScheduler& workload() {
  static const GangScheduler kScheduler{
      .pod_groups = {"scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup"},
      .scheduler_name = "",
      .mark_part = "spec",
      .mark_map = "schedulingGroup",
      .mark_key = "podGroupName",
      .role_annotation = "",
      .has_empty_members = false,
      .spec_members = {"schedulingPolicy", "disruptionMode", "priorityClassName"},
      .spec = workload_spec,
      .is_admitted = nullptr};
  return kScheduler;
}

}  // namespace trainer::gang
