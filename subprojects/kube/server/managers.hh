// The entries of metadata.managedFields.
#pragma once

#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/server/field_set.hh"

namespace kube::server {

// Who manages fields: an entry of metadata.managedFields is one of these and its fields.
struct ManagerId {
  std::string manager;
  std::string operation;    // "Apply" or "Update"
  std::string api_version;  // of an Update; an Apply is the same manager in all versions
  std::string subresource;
  friend auto operator<=>(const ManagerId&, const ManagerId&) = default;
  // "\"x\" using v1", as conflicts name it.
  std::string print() const;
};

struct ManagedEntry {
  ManagerId id;
  std::string api_version;  // as it is written
  std::string time;         // RFC 3339; may be empty
  FieldSet fields;
  bool is_apply() const { return id.operation == "Apply"; }
};

// All entries of one object. They have no order in memory; to_json() sorts them.
class ManagedEntries {
 public:
  // Errors (kInvalid): an item that is not an entry of managedFields.
  static Result<ManagedEntries> read(const Json& managed_fields);
  // Sorted as the API server does; null where there is none.
  Json to_json() const;

  bool empty() const { return entries_.empty(); }
  std::vector<ManagedEntry>& all() { return entries_; }
  const std::vector<ManagedEntry>& all() const { return entries_; }
  ManagedEntry* find(const ManagerId& id);
  // The entry, made where it is missing.
  ManagedEntry& at(const ManagerId& id, const std::string& api_version);
  void erase_empty();
  // At most ten Updates: older ones of a version become "ancient-changes".
  void merge_oldest_updates();

 private:
  std::vector<ManagedEntry> entries_;
};

}  // namespace kube::server
