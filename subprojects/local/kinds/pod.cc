#include "kube/model/pod_checks.hh"
#include "kube/model/resources.hh"
#include "local/kinds/cells.hh"
#include "local/kinds/kinds.hh"
#include "local/kinds/pod_spec.hh"

namespace trainer::local {
namespace {

// Returns a pod's spec without its mutable parts: images, deadlines, further tolerations,
// scheduling gates that are removed, and the node, once (a binding).
Json unchanging_part(const Json& pod, const Json& before) {
  Json spec = pod.get("spec");
  for (const char* list : {"containers", "initContainers"})
    if (Json* containers = spec.find(list))
      for (Json& container : containers->as_array()) container.erase("image");
  for (const char* name : {"activeDeadlineSeconds", "tolerations", "schedulingGates"})
    spec.erase(name);
  if (before.get("spec").get_string("nodeName").empty()) spec.erase("nodeName");
  if (!before.get("spec").get_array("schedulingGates").empty())
    for (const char* name : {"nodeSelector", "affinity"}) spec.erase(name);
  return spec;
}

}  // namespace

FieldErrors check_pod(const Json& pod, const Json* before) {
  FieldErrors errors;
  kube::check_pod_spec(pod.get("spec"), "spec", errors);
  if (before != nullptr && unchanging_part(pod, *before) != unchanging_part(*before, *before))
    errors.push_back(kube::forbidden(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
        "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
        "set to 1 if it was previously negative)"));
  return errors;
}

Builtin pod_kind() {
  return {.resource = kube::kPods,
          .short_names = {"po"},
          .rules = {set_pod_defaults, check_pod},
          .columns = "Name,Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates",
          .cells = pod_cells,
          .has_status = true,
          .has_generation = true,
          .is_of_all = true};
}

}  // namespace trainer::local
