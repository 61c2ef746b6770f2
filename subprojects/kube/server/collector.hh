// The garbage collector deletes objects because another object was deleted. It also deletes
// namespaces.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "kube/server/api.hh"
#include "kube/server/object_store.hh"

namespace kube::server {

// Dependents are found by their ownerReferences. An object is deleted in the background if none of
// its owners exists. An object that is deleted in the foreground is removed when the dependents
// that block it are gone. If an object is deleted with orphaning, its dependents lose their
// reference to it. A namespace that is being deleted is removed when it is empty.
//
// Follows the store as an observer, and writes only in step(). Concurrency: the thread of the
// store. It must live as long as the store is written.
class Collector {
 public:
  // Begins with the objects in the store. All parameters outlive the Collector.
  Collector(const ServedKinds& kinds, ObjectStore& store, std::function<Time()> now);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  bool has_work() const { return !queue_.empty(); }
  // Examines the objects that are queued. Objects that it changes are queued again, so call it
  // until has_work() is false.
  void step();

 private:
  void on_change(const Change& change);
  void enqueue(const std::string& uid);
  void enqueue_dependents(const std::string& uid);
  void enqueue_owners(const Json& object);
  void index(const Json& object, bool is_there);

  void examine(const std::string& uid);
  void examine_namespace(const Json& ns);
  void examine_owners(const ServedKind& kind, const ObjectKey& key, const Json& object);
  // Removes the object's finalizer of the collector (`foregroundDeletion`, `orphan`), once its
  // dependents allow it. Returns true if one was removed.
  bool release(const ServedKind& kind, const Json& object);
  void orphan_dependents(const Json& object);
  void remove(const ServedKind& kind, const ObjectKey& key, std::string_view propagation);
  void store(const ServedKind& kind, const ObjectKey& key, Json object);
  bool is_blocked(const std::string& uid) const;

  const ServedKinds& kinds_;
  ObjectStore& store_;
  std::function<Time()> now_;
  // Uids of dependents by the uid of an owner.
  std::map<std::string, std::set<std::string>> dependents_;
  std::deque<std::string> queue_;
  std::set<std::string> queued_;
};

}  // namespace kube::server
