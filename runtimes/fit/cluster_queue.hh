// The quotas of a ClusterQueue (Kueue, apis/kueue/v1beta1/clusterqueue_types.go). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "runtimes/fit/amounts.hh"

namespace trainer::fit {

struct ClusterQueue {
  struct Flavor {
    std::string name;
    Amounts nominal;
    Amounts reserved;  // by workloads that have been admitted
    // With a cohort: nullopt of one resource says that it may borrow without limit.
    std::vector<std::optional<std::int64_t>> borrowing;
  };
  struct Group {
    std::vector<bool> covers;  // by resource
    std::vector<Flavor> flavors;
  };
  std::string name;
  bool has_cohort = false;
  bool is_stopped = false;
  std::int64_t pending = 0;  // workloads that wait
  std::vector<Group> groups;

  static ClusterQueue read(const kube::Json& object, const ResourceTable& resources);
};

}  // namespace trainer::fit
