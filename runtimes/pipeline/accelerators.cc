#include "runtimes/pipeline/accelerators.hh"

#include <algorithm>
#include <array>

#include "kube/model/pod_template.hh"

namespace trainer::pipeline {

namespace {

// Device plugins name one schedulable device each. "*" matches anything, at the end or in front.
constexpr std::array<std::string_view, 13> kAccelerators = {
    "*/gpu",                  // nvidia.com, amd.com and every vendor that follows them
    "nvidia.com/gpu.shared",  // time slicing under a name of its own
    "nvidia.com/mig-*",       // each slice is a device of its own, of any profile
    "google.com/tpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice",
    "huawei.com/Ascend310",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend910",
    "cambricon.com/mlu",
};

bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.starts_with('*'))
    return name.ends_with(pattern.substr(1)) && name.size() >= pattern.size();
  if (pattern.ends_with('*'))
    return name.starts_with(pattern.substr(0, pattern.size() - 1)) && name.size() >= pattern.size();
  return name == pattern;
}

std::int64_t sum(const kube::Json& container, std::string_view kind) {
  std::int64_t devices = 0;
  for (const auto& [name, amount] : kube::read_resources(container, kind))
    if (is_accelerator(name)) devices += amount.value();
  return devices;
}

}  // namespace

bool is_accelerator(std::string_view resource) {
  return std::any_of(kAccelerators.begin(), kAccelerators.end(),
                     [resource](std::string_view pattern) { return matches(resource, pattern); });
}

std::int64_t count_accelerators(const kube::Json& container) {
  const std::int64_t requested = sum(container, "requests");
  return requested > 0 ? requested : sum(container, "limits");
}

}  // namespace trainer::pipeline
