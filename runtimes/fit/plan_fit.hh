// Will a job fit now, does it wait and for what, or does it never fit? Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/time.hh"
#include "runtimes/fit/asked.hh"
#include "runtimes/fit/snapshot.hh"

namespace trainer::fit {

enum class Verdict {
  kFits,     // all pods find a node now
  kUnknown,  // the objects that were read do not decide it
  kWaits,    // they would, if other pods ended
  kNever,    // they would not, even if all other pods but those of DaemonSets ended
};
std::string name_of(Verdict verdict);  // "now", "unknown", "waits" or "never"

// A job has this much of what is missing.
struct Held {
  Holder by;
  std::int64_t pods = 0;
  std::string amount;                  // "8 nvidia.com/gpu"
  std::optional<kube::Time> deadline;  // plan_fit() does not know it
};

struct Reason {
  std::string rule;  // the scheduler's name of its filter, or ResourceQuota
  std::string role;  // "" for the whole job
  std::string message;
  std::string change;         // the smallest change that would help; "" if none is known
  std::vector<Held> holders;  // the oldest first; at most kMaxHolders
  std::int64_t more_holders = 0;
};
inline constexpr std::size_t kMaxHolders = 8;

struct NodeShare {
  struct Fullness {
    std::string resource;
    std::string used;  // with the job's pods
    std::string allocatable;
  };
  std::string node;
  std::int64_t pods = 0;
  std::vector<Fullness> resources;
};

struct RoleRequest {
  std::string role;
  std::int64_t pods = 0;
  std::vector<std::pair<std::string, std::string>> requests;  // resource and amount, of each pod
};

// This is how Kueue would deal with the job.
struct QueuePlan {
  using Flavors = std::vector<std::pair<std::string, std::string>>;  // resource and flavor
  std::string cluster_queue;
  std::string cohort;  // "" for none
  // The job's place among the workloads that wait in the ClusterQueue, and how many they are
  // without it. 0: not known.
  std::int64_t position = 0;
  std::int64_t pending = 0;
  std::vector<std::pair<std::string, Flavors>> roles;         // empty if no flavor has enough
  std::vector<std::pair<std::string, std::string>> borrowed;  // resource and amount
  std::vector<Holder> preempts;  // the jobs that Kueue would preempt for it
};

struct PlanAnswer {
  Verdict verdict = Verdict::kFits;
  std::vector<RoleRequest> roles;
  std::int64_t pods = 0;
  std::vector<std::pair<std::string, std::int64_t>> devices;  // in sum
  std::int64_t gang_minimum = 0;
  std::string queue;
  std::optional<QueuePlan> queue_plan;  // set if the ClusterQueue could be read
  std::vector<NodeShare> nodes;         // the nodes that take pods; only for kFits
  std::vector<Reason> reasons;          // the first one decided
  std::int64_t waiting_pods = 0;        // pods of the cluster without a node
  std::vector<std::string> undecided;
};

// Cost: linear in nodes and pods; with spread constraints, affinity or anti-affinity, nodes times
// pods of the job.
PlanAnswer plan_fit(const Asked& asked, const Snapshot& snapshot);

}  // namespace trainer::fit
