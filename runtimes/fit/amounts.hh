// Amounts of resources are counted as kube-scheduler counts them: CPU in milli, all others in whole
// units, each rounded up. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/pod_template.hh"

namespace trainer::fit {

// The amounts are in the order of a ResourceTable.
using Amounts = std::vector<std::int64_t>;

// These are the resources that matter for one plan. Others are not kept of any node or pod.
class ResourceTable {
 public:
  // CPU, memory and pods come first, since each pod has them.
  static constexpr std::size_t kCpu = 0;
  static constexpr std::size_t kMemory = 1;
  static constexpr std::size_t kPods = 2;

  ResourceTable() : ResourceTable(std::vector<std::string>()) {}
  explicit ResourceTable(const std::vector<std::string>& more);

  std::size_t size() const { return names_.size(); }
  const std::string& name(std::size_t index) const { return names_[index]; }
  // Resources that the table does not have are left out.
  Amounts read(const kube::ResourceList& amounts) const;
  // Returns the text with its unit: "1500m", "64Gi", "8".
  std::string print(std::size_t index, std::int64_t amount) const;

 private:
  std::vector<std::string> names_;
};

// Returns whether the resource is one that a device plugin advertises, such as "nvidia.com/gpu".
bool is_device(std::string_view resource);

// Returns "1 pod" or "2 pods".
std::string count_of_pods(std::int64_t count);

}  // namespace trainer::fit
