#include "runtimes/fit/rules.hh"

namespace trainer::fit {

std::string name_of(Rule rule) {
  switch (rule) {
    case Rule::kNodeUnschedulable:
      return "NodeUnschedulable";
    case Rule::kTaintToleration:
      return "TaintToleration";
    case Rule::kNodeAffinity:
      return "NodeAffinity";
    case Rule::kNodePorts:
      return "NodePorts";
    case Rule::kNodeResourcesFit:
      return "NodeResourcesFit";
    case Rule::kPodTopologySpread:
      return "PodTopologySpread";
    case Rule::kInterPodAffinity:
      return "InterPodAffinity";
  }
  return {};
}

}  // namespace trainer::fit
