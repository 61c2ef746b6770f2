// Says why a pod of a role finds no node. Pure.
#pragma once

#include "runtimes/fit/place.hh"
#include "runtimes/fit/plan_fit.hh"

namespace trainer::fit {

// The role is one that lacks a pod in the placement. kEmptied says that it never fits.
Reason explain(const Placement& placement, const Role& role, World::Pods pods);

// Returns the most that one node, which the rules about nodes allow, has left of each resource.
Amounts widest(const World& world, const Role& role);

}  // namespace trainer::fit
