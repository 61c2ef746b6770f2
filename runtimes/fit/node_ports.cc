// pkg/scheduler/framework/plugins/nodeports
#include "runtimes/fit/rules.hh"

namespace trainer::fit {

bool node_ports(const PodRequest& pod, const World::State& state) {
  for (const HostPort& wanted : pod.ports)
    for (const auto& [group, count] : state.pods)
      for (const HostPort& taken : group->ports)
        if (wanted.conflicts(taken)) return false;
  return true;
}

}  // namespace trainer::fit
