// What the API server does with an object and its structural schema.
#pragma once

#include <string>
#include <vector>

#include "api/describe/schema_builder.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

// Fills the schema's defaults into the object, as the API server does.
void apply_schema_defaults(kube::Json& object, const wire::Schema& schema);

// What the API server's check of the schema would refuse: types, enums, bounds, patterns, required
// members, list-map duplicates, and the CEL rules that have a predicate. `before` is the stored
// object, or nullptr: a member that was removed from the API may stay where it was stored.
kube::FieldErrors check_schema(const kube::Json& object, const wire::Schema& schema,
                               const kube::Json* before = nullptr);

// The paths of the fields that the schema does not have, in order: what the API server's strict
// decoding refuses (apiextensions-apiserver, pkg/apiserver/schema/pruning). `object` is as it was
// before admission.
std::vector<std::string> unknown_fields(const kube::Json& object, const wire::Schema& schema);

// What the CEL rules refuse that compare with the stored object: `self == oldSelf`, and
// `has(self.NAME) == has(oldSelf.NAME)`; other transition rules pass. As in the API server they
// count only where both objects have the value, and items of a list only where it is a map. Equal
// is what CEL says is equal: maps and sets in any order, times that are the same instant.
kube::FieldErrors check_transitions(const kube::Json& object, const kube::Json& before,
                                    const wire::Schema& schema);

}  // namespace trainer
