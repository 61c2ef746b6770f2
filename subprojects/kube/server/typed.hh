// Values with their schema are merged, compared and taken apart field by field
// (sigs.k8s.io/structured-merge-diff/typed).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/server/field_schema.hh"
#include "kube/server/field_set.hh"

namespace kube::server {

// Returns the reasons why a value cannot be applied: ".spec.a: field not declared in schema".
std::vector<std::string> typed_errors(const Json& value, const FieldSchema& schema);

// Returns every leaf and item of the value.
FieldSet fields_of(const Json& value, const FieldSchema& schema);
// Does the same for a set: fields that the schema declares by name become members if something
// below them is one.
FieldSet with_named_fields(const FieldSet& set, const FieldSchema& schema);

struct Comparison {
  FieldSet added;
  FieldSet removed;
  FieldSet modified;
};
Comparison compare(const Json& before, const Json& after, const FieldSchema& schema);

// Returns `current` with the values of `config`. Items of a list that both have are in the order of
// `config`.
Json merge_typed(const Json& current, const Json& config, const FieldSchema& schema);

// Returns the value without these members and items. An object or list that loses all its content
// becomes null, and still counts as a field.
Json without_fields(const Json& value, const FieldSet& gone, const FieldSchema& schema);
// Removes the members that without_fields() has made null.
void discard_emptied(Json& value, const FieldSet& gone, const FieldSchema& schema);

// Returns how a list names an item: "k:{...}" or "v:..."; nullopt for an item that the list cannot
// have, or if the list is replaced whole.
std::optional<std::string> element_of(const Json& item, const FieldSchema& list);

}  // namespace kube::server
