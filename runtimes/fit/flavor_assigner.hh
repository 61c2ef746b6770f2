// Kueue assigns a flavor to each role of a job in each resource group, in the order of the roles
// and of the flavors (pkg/scheduler/flavorassigner). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtimes/fit/kueue_state.hh"

namespace trainer::fit {

// This is a job that asks for quota of a ClusterQueue. The queue and the roles outlive it.
struct Contender {
  const ClusterQueue* queue = nullptr;
  const std::vector<Role>* roles = nullptr;
  std::int64_t priority = 0;
  kube::Time created;
};

// The later ones are better.
enum class FlavorMode {
  kNoFit,         // more than there is, or others would have to end by themselves
  kNoCandidates,  // preemption would be allowed, and finds no workloads
  kPreempt,       // by preemption in the same ClusterQueue
  kReclaim,       // by preemption in others of the cohort
  kFit,
};

struct FlavorChoice {
  std::string flavor;
  FlavorMode mode = FlavorMode::kFit;
  int borrowing = 0;  // the height of the subtree that lends; 0 for none
};

// This is why a role does not get a flavor.
struct FlavorObstacle {
  std::string role;
  std::string message;
  std::string change;
  std::optional<FlavorResource> at;  // its quota is too small
};

struct Assignment {
  FlavorMode mode = FlavorMode::kFit;
  int borrowing = 0;
  FlavorUsage usage;
  std::vector<std::map<std::size_t, FlavorChoice>> roles;  // by resource; one for each role
  std::vector<FlavorObstacle> obstacles;                   // the role's that got no flavor

  bool is_preempting() const { return mode != FlavorMode::kFit && mode != FlavorMode::kNoFit; }
  // Returns the flavors in which others have to be preempted.
  FlavorSet scarce() const;
};

// `is_optimistic`: a flavor that could not be read allows every pod, of Kueue's two rules about
// node labels (see keys_of()) the wider one counts, and of those about preference (see
// is_preferred()) the newer one; else it allows none, and the others count. The tree is the same
// again afterwards.
Assignment assign_flavors(const KueueState& state, QuotaTree& tree, const Contender& job,
                          bool is_optimistic);

}  // namespace trainer::fit
