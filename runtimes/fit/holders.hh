// Finds who has what a job lacks. Pure.
#pragma once

#include <vector>

#include "runtimes/fit/plan_fit.hh"
#include "runtimes/fit/world.hh"

namespace trainer::fit {

// Returns the nodes to which pods of the role may go, by the rules about nodes.
std::vector<const World::State*> open_nodes(const World& world, const Role& role);

// Returns the resource of which most of these nodes have too little; of equal ones a device.
std::size_t find_scarce(const World& world, const Amounts& requests,
                        const std::vector<const World::State*>& nodes);

// Adds the jobs that have pods on these nodes with the resource, the oldest first.
void add_holders(const World& world, const std::vector<const World::State*>& nodes,
                 std::size_t resource, Reason& reason);

}  // namespace trainer::fit
