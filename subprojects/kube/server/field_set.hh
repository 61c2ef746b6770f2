// Sets of fields, as metadata.managedFields holds them (FieldsV1).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube::server {

// Elements are written as in FieldsV1: "f:NAME" of an object, "k:{KEYS}" and "v:VALUE" of a list.
using FieldPath = std::vector<std::string>;

// ".spec.containers[name="x"].image"
std::string print_path(const FieldPath& path);

// A tree whose nodes are members or not: that ".spec.a" is a member says nothing about ".spec" or
// ".spec.a.b". Value type; nodes without any member below them do not exist.
class FieldSet {
 public:
  // Errors (kInvalid): not what to_json() makes. Elements of unknown kinds are left out.
  static Result<FieldSet> read(const Json& fields);
  Json to_json() const;

  bool empty() const { return !is_member_ && children_.empty(); }
  bool has(const FieldPath& path) const;
  void insert(const FieldPath& path);
  // Makes the root itself a member; it counts where the set is attached to another as a child.
  void insert_root() { is_member_ = true; }
  bool has_root() const { return is_member_; }
  // Nothing where `child` is empty.
  void attach(const std::string& element, FieldSet child);
  // The members below one element; nullptr where there are none.
  const FieldSet* below(std::string_view element) const;
  const std::map<std::string, FieldSet, std::less<>>& children() const { return children_; }

  friend FieldSet operator|(const FieldSet& a, const FieldSet& b);
  friend FieldSet operator&(const FieldSet& a, const FieldSet& b);
  friend FieldSet operator-(const FieldSet& a, const FieldSet& b);
  // Without what is in `roots`, and what is below it.
  FieldSet without_trees(const FieldSet& roots) const;
  // Of one level first the members, then what is below each.
  void for_each(const std::function<void(const FieldPath& path)>& visit) const;

 private:
  void visit_below(FieldPath& path, const std::function<void(const FieldPath& path)>& visit) const;

  bool is_member_ = false;
  std::map<std::string, FieldSet, std::less<>> children_;
};

}  // namespace kube::server
