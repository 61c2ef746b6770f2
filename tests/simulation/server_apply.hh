// Server-side apply, as far as one manager and keyed lists go. Pure.
#pragma once

#include "kube/model/json.hh"

namespace trainer::simulation {

// `current` with what `wanted` says, and without what `before` (the last thing this manager
// applied; null: nothing) said and `wanted` does not.
kube::Json server_side_apply(const kube::Json& current, const kube::Json& before,
                             const kube::Json& desired);

// metadata.managedFields of an object to which the manager "trainer" applied `wanted`.
kube::Json managed_fields_of(const kube::Json& desired);

}  // namespace trainer::simulation
