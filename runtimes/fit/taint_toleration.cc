// pkg/scheduler/framework/plugins/tainttoleration: taints with PreferNoSchedule keep no pod away.
#include "runtimes/fit/rules.hh"

namespace trainer::fit {

const Taint* find_untolerated(const PodRequest& pod, const Node& node) {
  for (const Taint& taint : node.taints) {
    const bool is_hard = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    if (is_hard && !pod.tolerates(taint)) return &taint;
  }
  return nullptr;
}

bool taint_toleration(const PodRequest& pod, const Node& node) {
  return find_untolerated(pod, node) == nullptr;
}

}  // namespace trainer::fit
