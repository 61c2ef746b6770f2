#include "runtimes/plugins/torch/process_count.hh"

#include <algorithm>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/accelerators.hh"

namespace trainer::pipeline {

namespace {

std::int64_t count_cpus(const kube::Json& container) {
  for (const char* kind : {"requests", "limits"}) {
    const kube::ResourceList amounts = kube::read_resources(container, kind);
    if (const auto cpu = amounts.find("cpu"); cpu != amounts.end() && !cpu->second.is_zero())
      return cpu->second.value();
  }
  return 0;
}

}  // namespace

ProcessCount count_processes(std::optional<std::int32_t> desired, const kube::Json& container) {
  ProcessCount count;
  count.accelerators = count_accelerators(container);
  if (desired)
    count.number = *desired;
  else if (count.accelerators == 0)
    count.number = std::max<std::int64_t>(1, count_cpus(container));
  return count;
}

}  // namespace trainer::pipeline
