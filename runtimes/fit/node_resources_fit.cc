// pkg/scheduler/framework/plugins/noderesources: a pod that asks for nothing fits wherever a pod
// more may be.
#include "kube/model/saturating.hh"
#include "runtimes/fit/rules.hh"

namespace trainer::fit {

bool node_resources_fit(const Amounts& requests, const World::State& state) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] > 0 &&
        requests[i] > kube::saturating_add(state.node->allocatable[i], -state.used[i]))
      return false;
  }
  return true;
}

}  // namespace trainer::fit
