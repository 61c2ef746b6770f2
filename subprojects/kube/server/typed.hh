// Values with their schema: merged, compared and taken apart field by field
// (sigs.k8s.io/structured-merge-diff/typed).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/server/field_schema.hh"
#include "kube/server/field_set.hh"

namespace kube::server {

// What keeps a value from being applied: ".spec.a: field not declared in schema".
std::vector<std::string> typed_errors(const Json& value, const FieldSchema& schema);

// Every leaf and item that the value mentions.
FieldSet fields_of(const Json& value, const FieldSchema& schema);
// The same for a set: fields that the schema declares by name become members where something below
// them is one.
FieldSet with_named_fields(const FieldSet& set, const FieldSchema& schema);

struct Comparison {
  FieldSet added;
  FieldSet removed;
  FieldSet modified;
};
Comparison compare(const Json& before, const Json& after, const FieldSchema& schema);

// `current` with what `config` says. Items of a list that both have are in the order of `config`.
Json merge_typed(const Json& current, const Json& config, const FieldSchema& schema);

// The value without these members and items. An object or list that loses all its content becomes
// null, and still counts as a field.
Json without_fields(const Json& value, const FieldSet& gone, const FieldSchema& schema);
// Removes the members that without_fields() has made null.
void discard_emptied(Json& value, const FieldSet& gone, const FieldSchema& schema);

// How a list names an item: "k:{...}" or "v:..."; nullopt for one that it cannot have, or of a list
// that is replaced whole.
std::optional<std::string> element_of(const Json& item, const FieldSchema& list);

}  // namespace kube::server
