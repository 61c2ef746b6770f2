// metadata.managedFields holds sets of fields (FieldsV1).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube::server {

// The elements are those of FieldsV1: "f:NAME" of an object, "k:{KEYS}" and "v:VALUE" of a list.
using FieldPath = std::vector<std::string>;

// Returns ".spec.containers[name="x"].image".
std::string print_path(const FieldPath& path);

// A set is a tree whose nodes are members or not: if ".spec.a" is a member, this says nothing about
// ".spec" or ".spec.a.b". Value type; nodes without any member below them do not exist.
class FieldSet {
 public:
  // Errors (kInvalid): the text is not one of to_json(). Elements of unknown kinds are left out.
  static Result<FieldSet> read(const Json& fields);
  Json to_json() const;

  bool empty() const { return !is_member_ && children_.empty(); }
  bool has(const FieldPath& path) const;
  void insert(const FieldPath& path);
  // Makes the root itself a member; it counts when the set is attached to another as a child.
  void insert_root() { is_member_ = true; }
  bool has_root() const { return is_member_; }
  // Does nothing if `child` is empty.
  void attach(const std::string& element, FieldSet child);
  // Returns the members below one element; nullptr if there are none.
  const FieldSet* below(std::string_view element) const;
  const std::map<std::string, FieldSet, std::less<>>& children() const { return children_; }

  friend FieldSet operator|(const FieldSet& a, const FieldSet& b);
  friend FieldSet operator&(const FieldSet& a, const FieldSet& b);
  friend FieldSet operator-(const FieldSet& a, const FieldSet& b);
  // Returns the set without the members of `roots`, and those below them.
  FieldSet without_trees(const FieldSet& roots) const;
  // Visits at each level first the members, then the members below each.
  void for_each(const std::function<void(const FieldPath& path)>& visit) const;

 private:
  void visit_below(FieldPath& path, const std::function<void(const FieldPath& path)>& visit) const;

  bool is_member_ = false;
  std::map<std::string, FieldSet, std::less<>> children_;
};

}  // namespace kube::server
