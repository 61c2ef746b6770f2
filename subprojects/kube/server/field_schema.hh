// A schema says how values are owned, merged and pruned.
#pragma once

#include <string_view>

#include "kube/model/json.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// Returns the schema of metav1.ObjectMeta.
const Json& object_meta_schema();

// This is the part of a structural schema that belongs to one value. It may be absent: then objects
// are merged member by member and lists are replaced whole (structured-merge-diff calls that a
// deduced type). Refers to the kind, which must live longer.
class FieldSchema {
 public:
  // Returns the schema of the whole object. Its metadata is metav1.ObjectMeta, whatever the schema
  // says.
  static FieldSchema of(const ServedKind& kind);

  FieldSchema member(std::string_view name) const;
  FieldSchema items() const;
  // Returns whether an object may have this member.
  bool allows(std::string_view name) const;
  // Returns whether the member is declared by name, rather than as one of a map.
  bool has_field(std::string_view name) const;

  bool is_atomic_object() const { return text("x-kubernetes-map-type") == "atomic"; }
  enum class ListType { kAtomic, kSet, kMap };
  ListType list_type() const;
  const Json::Array& list_keys() const;  // the keys of a kMap
  // Returns the default of a member, if it has one; null otherwise.
  const Json& default_of(std::string_view name) const;

  std::string_view type() const { return text("type"); }
  // Returns whether a value of this JSON type may be here at all.
  bool accepts(const Json& value) const;

 private:
  FieldSchema(const ServedKind& kind, const Json* own);
  const Json* find(std::string_view keyword) const;
  std::string_view text(std::string_view keyword) const;
  bool is_set(std::string_view keyword) const;
  bool is_open() const;

  const ServedKind* kind_;
  const Json* own_;     // nullptr without a schema
  const Json* target_;  // the type that its $ref names; nullptr without one
  bool is_root_ = false;
};

}  // namespace kube::server
