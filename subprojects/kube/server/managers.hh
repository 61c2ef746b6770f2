// metadata.managedFields has these entries.
#pragma once

#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/server/field_set.hh"

namespace kube::server {

// A manager owns fields: an entry of metadata.managedFields is one of these and its fields.
struct ManagerId {
  std::string manager;
  std::string operation;  // "Apply" or "Update"
  std::string
      api_version;  // the version of an Update; an Apply is the same manager in all versions
  std::string subresource;
  friend auto operator<=>(const ManagerId&, const ManagerId&) = default;
  // Returns "\"x\" using v1", which conflicts show.
  std::string print() const;
};

struct ManagedEntry {
  ManagerId id;
  std::string api_version;  // the version in which it is written
  std::string time;         // RFC 3339; may be empty
  FieldSet fields;
  bool is_apply() const { return id.operation == "Apply"; }
};

// These are all entries of one object. They have no order in memory; to_json() sorts them.
class ManagedEntries {
 public:
  // Errors (kInvalid): an item that is not an entry of managedFields.
  static Result<ManagedEntries> read(const Json& managed_fields);
  // Returns the entries in the API server's order; null if there are none.
  Json to_json() const;

  bool empty() const { return entries_.empty(); }
  std::vector<ManagedEntry>& all() { return entries_; }
  const std::vector<ManagedEntry>& all() const { return entries_; }
  ManagedEntry* find(const ManagerId& id);
  // Returns the entry, and makes it if it is missing.
  ManagedEntry& at(const ManagerId& id, const std::string& api_version);
  void erase_empty();
  // Keeps at most ten Updates: older ones of a version become "ancient-changes".
  void merge_oldest_updates();

 private:
  std::vector<ManagedEntry> entries_;
};

}  // namespace kube::server
