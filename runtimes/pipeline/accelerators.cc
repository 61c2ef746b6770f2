#include "runtimes/pipeline/accelerators.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "kube/model/quantity.hh"
#include "kube/model/saturating.hh"

namespace trainer::pipeline {

namespace {

using Process = DeviceRow::Process;

// Shares come before the devices whose names they contain.
constexpr std::array<DeviceRow, 27> kRows = {{
    {"?*/*gpumem*", Process::kNone, "HAMi: memory of a GPU, in MiB or percent"},
    {"?*/*gpucores*", Process::kNone, "HAMi: compute of a GPU, in percent"},
    {"?*/*gpu-mem*", Process::kNone, "Volcano, Koordinator, Alibaba Cloud: memory of a GPU"},
    {"?*/*gpu-core*", Process::kNone, "Volcano, Koordinator, Alibaba Cloud: compute of a GPU"},
    {"koordinator.sh/gpu", Process::kNone, "Koordinator: percents of a GPU"},
    {"huawei.com/Ascend*-memory", Process::kNone, "HAMi: memory of an NPU"},
    {"?*/*gpu*", Process::kAuto, "Kubeflow Trainer counts every name with gpu: NVIDIA, AMD, HAMi"},
    {"nvidia.com/mig-?*", Process::kAuto, "NVIDIA's device plugin: slices of a GPU"},
    {"amd.com/?*_nps?*", Process::kAuto, "AMD's device plugin: partitions of a GPU"},
    {"gpu.intel.com/i915", Process::kAuto, "Intel's device plugin: GPUs"},
    {"gpu.intel.com/xe", Process::kAuto, "Intel's device plugin: GPUs"},
    {"google.com/tpu", Process::kNumbered, "Google Kubernetes Engine: TPU chips"},
    {"aws.amazon.com/neuron", Process::kNumbered, "AWS Neuron's device plugin: devices"},
    {"aws.amazon.com/neurondevice", Process::kNumbered, "AWS Neuron's device plugin: devices"},
    {"aws.amazon.com/neuroncore", Process::kNumbered, "AWS Neuron's device plugin: cores"},
    {"habana.ai/gaudi", Process::kNumbered, "Intel Gaudi's device plugin"},
    {"huawei.com/Ascend?*", Process::kNumbered, "Huawei's device plugin: NPUs and their slices"},
    {"cambricon.com/mlu", Process::kNumbered, "Cambricon's device plugin"},
    {"cambricon.com/mlunum", Process::kNumbered, "HAMi: shares of a Cambricon MLU"},
    {"cambricon.com/vmlu", Process::kNumbered, "HAMi: shares of a Cambricon MLU"},
    {"hygon.com/dcu", Process::kNumbered, "Hygon's device plugin"},
    {"hygon.com/dcunum", Process::kNumbered, "HAMi: shares of a Hygon DCU"},
    {"enflame.com/gcu", Process::kNumbered, "Enflame's device plugin"},
    {"enflame.com/vgcu", Process::kNumbered, "HAMi: shares of an Enflame GCU"},
    {"kunlunxin.com/xpu", Process::kNumbered, "Kunlunxin's device plugin"},
    {"kunlunxin.com/vxpu", Process::kNumbered, "HAMi: shares of a Kunlunxin XPU"},
    {"qualcomm.com/qaic", Process::kNumbered, "Qualcomm's device plugin: Cloud AI cards"},
}};

// These names are in Kubeflow's Python SDK, kubeflow/trainer/backends/kubernetes/utils.py and
// constants.py.
constexpr std::array<std::string_view, 4> kReadBySdk = {"nvidia.com/gpu", "nvidia.com/mig-*",
                                                        "google.com/tpu", "huawei.com/Ascend910"};

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// It takes no longer than the product of the lengths: only the last "*" is tried again.
bool matches(std::string_view name, std::string_view pattern) {
  std::size_t n = 0;
  std::size_t p = 0;
  std::size_t star = pattern.npos;  // behind the last "*"
  std::size_t taken = 0;            // the length that has begun to match
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || lower(pattern[p]) == lower(name[n]))) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool matches_any(std::string_view name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [name](std::string_view pattern) { return matches(name, pattern); });
}

Process process_of(std::string_view resource, const DeviceRules& rules) {
  // Only Kubernetes' own resources have no domain.
  if (resource.find('/') == resource.npos) return Process::kNone;
  if (matches_any(resource, rules.ignored)) return Process::kNone;
  if (matches_any(resource, rules.counted)) return Process::kNumbered;
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(),
                   [resource](const DeviceRow& one) { return matches(resource, one.pattern); });
  return row == kRows.end() ? Process::kNone : row->process;
}

DeviceCount count(const kube::Json& container, std::string_view kind, const DeviceRules& rules) {
  DeviceCount devices;
  for (const auto& [name, amount] : container.get("resources").get_object(kind)) {
    const Process process = process_of(name, rules);
    if (process == Process::kNone) continue;
    const auto number = kube::Quantity::read(amount);
    if (!number || number->value() <= 0) continue;
    devices.number = kube::saturating_add(devices.number, number->value());
    devices.is_found_by_torchrun &= process == Process::kAuto;
  }
  return devices;
}

}  // namespace

std::span<const DeviceRow> device_rows() {
  return kRows;
}

bool is_accelerator(std::string_view resource, const DeviceRules& rules) {
  return process_of(resource, rules) != Process::kNone;
}

DeviceCount count_devices(const kube::Json& container, const DeviceRules& rules) {
  const DeviceCount requested = count(container, "requests", rules);
  return requested.number > 0 ? requested : count(container, "limits", rules);
}

std::int64_t count_accelerators(const kube::Json& container, const DeviceRules& rules) {
  return count_devices(container, rules).number;
}

bool is_read_by_sdk(std::string_view resource) {
  return std::any_of(kReadBySdk.begin(), kReadBySdk.end(),
                     [resource](std::string_view pattern) { return matches(resource, pattern); });
}

std::string names_read_by_sdk() {
  return fmt::format("{}", fmt::join(kReadBySdk, ", "));
}

}  // namespace trainer::pipeline
