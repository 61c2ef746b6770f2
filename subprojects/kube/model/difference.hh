// This file compares what a controller would apply with what is stored. Pure.
#pragma once

#include "kube/model/json.hh"

namespace kube {

// Every member of `desired` is in `stored` with the same value; lists agree item by item.
// Members that only `stored` has are others' or defaults. Empty objects, empty lists and nulls
// count as absent, since API servers and clients disagree about them.
bool is_contained(const Json& desired, const Json& stored);

// Returns whether each contains the other: they are equal except for empty members.
bool is_equivalent(const Json& a, const Json& b);

}  // namespace kube
