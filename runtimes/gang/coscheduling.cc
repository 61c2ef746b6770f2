// The coscheduling plugin of kubernetes-sigs/scheduler-plugins (apis/scheduling/v1alpha1).
#include "runtimes/gang/gang_scheduler.hh"

namespace trainer::gang {
namespace {

kube::Json coscheduling_spec(const GroupRequest& request) {
  kube::Json spec = size_members(request);
  if (request.timeout_seconds) spec.set("scheduleTimeoutSeconds", *request.timeout_seconds);
  return spec;
}

}  // namespace

const GangScheduler& coscheduling() {
  static const GangScheduler kScheduler{
      .pod_groups = {"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"},
      .scheduler_name = "",
      .mark_part = "metadata",
      .mark_map = "labels",
      .mark_key = "scheduling.x-k8s.io/pod-group",
      .role_annotation = "",
      .has_empty_members = false,
      .spec_members = {"minMember", "minResources", "scheduleTimeoutSeconds"},
      .spec = coscheduling_spec,
      .is_admitted = nullptr};
  return kScheduler;
}

}  // namespace trainer::gang
