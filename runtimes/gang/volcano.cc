// Volcano (volcano-sh/volcano, staging/src/volcano.sh/apis).
#include "runtimes/gang/gang_scheduler.hh"

namespace trainer::gang {
namespace {

kube::Json volcano_spec(const GroupRequest& request) {
  kube::Json spec = size_members(request);
  if (request.queue) spec.set("queue", *request.queue);
  if (!request.priority_class.empty()) spec.set("priorityClassName", request.priority_class);
  return spec;
}

bool is_enqueued(const kube::Json& group) {
  const std::string_view phase = group.get("status").get_string("phase");
  return !phase.empty() && phase != "Pending";
}

}  // namespace

const GangScheduler& volcano() {
  static const GangScheduler kScheduler{
      .pod_groups = {"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"},
      .scheduler_name = "volcano",
      .mark_part = "metadata",
      .mark_map = "annotations",
      .mark_key = "scheduling.k8s.io/group-name",
      .role_annotation = "volcano.sh/task-spec",
      .has_empty_members = true,
      .spec_members = {"minMember", "minResources", "queue", "priorityClassName"},
      .spec = volcano_spec,
      .is_admitted = is_enqueued};
  return kScheduler;
}

}  // namespace trainer::gang
