// The API server does this with an object and its structural schema.
#pragma once

#include <string>
#include <vector>

#include "api/describe/schema_builder.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

// Fills the schema's defaults into the object, by the API server's rules.
void apply_schema_defaults(kube::Json& object, const wire::Schema& schema);

// Returns the errors that the API server's check of the schema would find: types, enums, bounds,
// patterns, required members, list-map duplicates, and the CEL rules that have a predicate.
// `before` is the stored object, or nullptr: a member that was removed from the API may stay where
// it was stored.
kube::FieldErrors check_schema(const kube::Json& object, const wire::Schema& schema,
                               const kube::Json* before = nullptr);

// Returns the paths of the fields that the schema does not have, in order. The API server's strict
// decoding refuses them (apiextensions-apiserver, pkg/apiserver/schema/pruning). `object` is the
// object before admission.
std::vector<std::string> unknown_fields(const kube::Json& object, const wire::Schema& schema);

// Returns the errors of the CEL rules that compare with the stored object: `self == oldSelf`, and
// those with a predicate (Rule::keeps); other transition rules pass. Like in the API server they
// count only if both objects have the value, and items of a list only if it is a map. Values are
// equal by CEL's rules: maps and sets in any order, times that are the same instant.
kube::FieldErrors check_transitions(const kube::Json& object, const kube::Json& before,
                                    const wire::Schema& schema);

}  // namespace trainer
