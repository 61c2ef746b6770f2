// This file decides whether a stored child already is as it would be applied: an unchanged object
// costs no request. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "kube/model/json.hh"
#include "kube/model/json_cursor.hh"

namespace trainer {

// Returns whether a server-side apply of `desired` would change the stored JobSet. The fields that
// JobSet admission lets change while it is suspended are compared exactly, so that a value from an
// earlier apply disappears again (a scheduler's node selector after an eviction). Other clients may
// set labels and annotations too: these are compared exactly only if `owned` (see
// owned_template_fields) is not known.
bool is_jobset_changed(const kube::Json& desired, const kube::Json& stored,
                       std::optional<std::uint64_t> owned);

// Returns a hash of the fields of a JobSet that may change while it is suspended (labels,
// annotations, node selectors, tolerations, gates) and that the field manager `trainer` owns by
// server-side apply: from it follows which of them a later apply would remove. The result is
// nullopt if that manager has no managedFields. The cache drops managedFields and keeps this hash.
std::optional<std::uint64_t> owned_template_fields(const kube::Json& jobset);
// The function above reads this part of an object's metadata: the member managedFields.
const kube::JsonFilter& seen_of_managed_fields();

// Returns the same for a dependent object that was read. It uses the object's managedFields if
// there are any.
bool is_dependent_changed(const kube::Json& desired, const kube::Json& stored);

}  // namespace trainer
