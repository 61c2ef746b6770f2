#include "runtimes/plugins/torch/process_count.hh"

#include <algorithm>

#include "kube/model/quantity.hh"

namespace trainer::pipeline {

namespace {

std::int64_t count_cpus(const kube::Json& container) {
  for (const char* kind : {"requests", "limits"}) {
    const kube::Json* amount = container.find_path({"resources", kind, "cpu"});
    if (amount == nullptr) continue;
    if (const auto cpu = kube::Quantity::read(*amount); cpu && !cpu->is_zero()) return cpu->value();
  }
  return 0;
}

}  // namespace

std::optional<IntOrString> desired_processes(const Draft& draft, const TorchPolicy& policy) {
  if (const auto& own = trainer_of(draft.job).numProcPerNode) return IntOrString{own, ""};
  return policy.numProcPerNode;
}

ProcessCount count_processes(const std::optional<IntOrString>& desired, const kube::Json& container,
                             const DeviceRules& devices) {
  const std::string_view word = desired ? std::string_view(desired->word) : "auto";
  ProcessCount count;
  const DeviceCount found = count_devices(container, devices);
  count.accelerators = found.number;
  if (desired && desired->number)
    count.number = *desired->number;
  else if (word == "gpu")
    count.word = "gpu";
  else if (word == "cpu" || count.accelerators == 0)
    count.number = std::max<std::int64_t>(1, count_cpus(container));
  else if (!found.is_found_by_torchrun)
    count.number = found.number;
  return count;
}

}  // namespace trainer::pipeline
