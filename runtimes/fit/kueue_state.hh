// The state is what Kueue decides by about one job: its ClusterQueue, the cohort around it, the
// flavors, and the workloads of these queues. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "runtimes/fit/asked.hh"
#include "runtimes/fit/cluster_queue.hh"

namespace trainer::fit {

// This is a Workload that waits, or that has reserved quota.
struct QueuedWorkload {
  std::string ns;
  std::string name;
  std::string owner_kind;  // "" without owner
  std::string owner_name;
  std::string queue;          // its LocalQueue
  std::string cluster_queue;  // "" if it is not known
  std::int64_t priority = 0;
  kube::Time created;
  std::optional<kube::Time> reserved_since;  // nullopt: it waits
  bool is_evicted = false;                   // its quota is about to be free
  std::int64_t pods = 0;
  FlavorUsage usage;        // empty for one that waits
  std::vector<Role> roles;  // empty for one that does not wait; see KueueState::add()

  bool is_waiting() const { return !reserved_since; }
  // Returns nullopt for one that has ended, or waits for nothing.
  static std::optional<QueuedWorkload> read(const kube::Json& object,
                                            const ResourceTable& resources);
};

// This is a workload that waits, as the visibility API of Kueue shows it.
struct PendingPosition {
  std::string ns;
  std::string owner_name;
  std::int64_t priority = 0;
};

struct KueueState {
  ResourceTable resources;
  std::string queue;                                        // the job's ClusterQueue
  std::map<std::string, ClusterQueue, std::less<>> queues;  // by name
  std::vector<Cohort> cohorts;
  std::vector<ResourceFlavor> flavors;
  std::map<std::string, std::vector<QueuedWorkload>, std::less<>> workloads;  // by ClusterQueue
  // Those that wait in the ClusterQueue; nullopt if the visibility API is not served.
  std::optional<std::vector<PendingPosition>> pending;
  std::int64_t priority = 0;       // the job's
  std::string job_kind, job_name;  // the job, if it is in the cluster already
  std::optional<kube::Time> job_created;
  std::string local_queue_inactive;  // the reason why the LocalQueue lets nothing through
  // The labels of the job's namespace; nullopt if they could not be read.
  std::optional<kube::StringMap> namespace_labels;
  // The reason why these could not be read; "" if they were read.
  std::string cohort_unread, flavors_unread, workloads_unread, priority_unread;

  void add(ClusterQueue queue);
  // Keeps a workload only if it may decide: one that has reserved quota of one of the queues, one
  // that waits in the job's ClusterQueue, or the first one that waits in another StrictFIFO queue.
  // Only the last one keeps its roles. The queues are there before.
  void add(QueuedWorkload workload);
  std::span<const QueuedWorkload> workloads_of(std::string_view queue) const;
  const ClusterQueue* find_queue(std::string_view name) const;
  const ResourceFlavor* find_flavor(std::string_view name) const;
  // The job's own Workload is not one that it waits for.
  bool is_own(const QueuedWorkload& workload, const std::string& ns) const;

  // Returns the tree that has the job's ClusterQueue. If `is_optimistic`, quota that could not be
  // read is taken for unlimited, else for used up. nullopt says that Cohorts are parents of each
  // other.
  std::optional<QuotaTree> tree(bool is_optimistic) const;
  // Returns the same tree as if nothing were in use.
  std::optional<QuotaTree> empty_tree() const;
};

// Returns how Kueue counts the pods of a role. Each resource is that of all its pods.
Amounts sum_of(const Role& role, const ResourceTable& resources);

}  // namespace trainer::fit
