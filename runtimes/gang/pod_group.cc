#include "runtimes/gang/pod_group.hh"

namespace trainer::gang {

kube::Json write_resources(const kube::ResourceList& resources) {
  kube::Json amounts = kube::Json::object();
  for (const auto& [name, amount] : resources) amounts.set(name, amount.to_string());
  return amounts;
}

}  // namespace trainer::gang
