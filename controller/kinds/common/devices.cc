#include "controller/kinds/common/devices.hh"

#include <algorithm>

#include "kube/model/saturating.hh"
#include "runtimes/pipeline/accelerators.hh"

namespace trainer {

using kube::Json;

std::int64_t devices_of_pods(std::int64_t pods, const Json& pod_template) {
  const Json& spec = pod_template.get("spec");
  std::int64_t together = 0;
  for (const Json& container : spec.get_array("containers"))
    together = kube::saturating_add(together, pipeline::count_accelerators(container, {}));
  std::int64_t most = together;
  for (const Json& container : spec.get_array("initContainers"))
    most = std::max(most, pipeline::count_accelerators(container, {}));
  return kube::saturating_multiply(std::max<std::int64_t>(pods, 0), most);
}

std::int64_t devices_of_roles(const Json& job, std::string_view replica_specs) {
  std::int64_t devices = 0;
  for (const auto& [role, spec] : job.get("spec").get_object(replica_specs))
    devices = kube::saturating_add(
        devices, devices_of_pods(spec.get_int("replicas", 1), spec.get("template")));
  return devices;
}

}  // namespace trainer
