// The objects of Kueue that say what a queue may use (apis/kueue/v1beta2). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "runtimes/fit/amounts.hh"
#include "runtimes/fit/quota_tree.hh"
#include "runtimes/fit/request.hh"

namespace trainer::fit {

struct ClusterQueue {
  struct Group {
    std::vector<bool> covers;  // by resource
    std::vector<std::string> flavors;
  };
  // spec.flavorFungibility: whether another flavor is tried before this one is borrowed, or before
  // others are preempted in it.
  struct Fungibility {
    bool tries_next_to_borrow = false;
    bool tries_next_to_preempt = true;
    bool prefers_preemption = false;
  };
  struct Preemption {
    std::string within_queue = "Never";
    std::string reclaim = "Never";
    bool may_borrow = false;                       // borrowWithinCohort
    std::optional<std::int64_t> borrow_threshold;  // its maxPriorityThreshold
  };
  std::string name;
  std::string cohort;    // "" for none
  std::string inactive;  // the reason why it admits nothing; else ""
  bool is_strict = false;
  std::int64_t pending = 0;  // workloads that wait
  LabelSelector namespaces;
  std::vector<std::string> checks;
  Fungibility fungibility;
  Preemption preemption;
  std::vector<Group> groups;
  FlavorQuotas quotas;
  FlavorUsage reserved;  // by workloads that have been admitted

  static ClusterQueue read(const kube::Json& object, const ResourceTable& resources);
  // Returns the group that has quotas of the resource, or nullptr.
  const Group* find_group(std::size_t resource) const;
};

struct Cohort {
  std::string name;
  std::string parent;  // "" for none
  FlavorQuotas quotas;

  static Cohort read(const kube::Json& object, const ResourceTable& resources);
};

struct ResourceFlavor {
  std::string name;
  kube::StringMap labels;
  std::vector<Taint> taints;
  std::vector<Toleration> tolerations;  // its pods get these, too
  std::string topology;                 // "" for none

  static ResourceFlavor read(const kube::Json& object);
};

// Returns the resources of which a ClusterQueue or Cohort has quotas.
std::vector<std::string> covered_resources(const kube::Json& object);

}  // namespace trainer::fit
