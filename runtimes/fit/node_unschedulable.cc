// pkg/scheduler/framework/plugins/nodeunschedulable
#include "runtimes/fit/rules.hh"

namespace trainer::fit {

bool node_unschedulable(const PodRequest& pod, const Node& node) {
  return !node.is_unschedulable ||
         pod.tolerates({"node.kubernetes.io/unschedulable", "", "NoSchedule"});
}

}  // namespace trainer::fit
