#include "kube/server/collector.hh"

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/model/resources.hh"
#include "kube/server/deletion.hh"
#include "kube/server/target.hh"

namespace kube::server {
namespace {

bool is_deleting(const Json& object) {
  return object.get("metadata").find("deletionTimestamp") != nullptr;
}

const Json::Array& owners_of(const Json& object) {
  return object.get("metadata").get_array("ownerReferences");
}

Json without_finalizer(Json object, std::string_view name) {
  erase_items(object["metadata"], "finalizers",
              [name](const Json& each) { return each == Json(name); });
  return object;
}

template <class IsGone>
Json without_owners(Json object, const IsGone& is_gone) {
  erase_items(object["metadata"], "ownerReferences", is_gone);
  return object;
}

}  // namespace

Collector::Collector(const ServedKinds& kinds, ObjectStore& store, std::function<Time()> now)
    : kinds_(kinds), store_(store), now_(std::move(now)) {
  for (const ServedKind& kind : kinds_) {
    // It is another version of a kind.
    if (find_stored_kind(kinds_, kind.resource) != &kind) continue;
    for (const auto& [key, held] : store_.all(kind.resource)) {
      const Object object = held.get();
      index(*object, true);
      enqueue(uid_of(*object));
    }
  }
  store_.subscribe([this](const Change& change) { on_change(change); });
}

void Collector::enqueue(const std::string& uid) {
  if (queued_.insert(uid).second) queue_.push_back(uid);
}

void Collector::enqueue_dependents(const std::string& uid) {
  const auto at = dependents_.find(uid);
  if (at == dependents_.end()) return;
  for (const std::string& dependent : at->second) enqueue(dependent);
}

void Collector::enqueue_owners(const Json& object) {
  for (const Json& owner : owners_of(object)) enqueue(std::string(owner.get_string("uid")));
}

void Collector::index(const Json& object, bool is_there) {
  const std::string uid = uid_of(object);
  for (const Json& owner : owners_of(object)) {
    const std::string owner_uid(owner.get_string("uid"));
    if (is_there) {
      dependents_[owner_uid].insert(uid);
    } else if (const auto at = dependents_.find(owner_uid); at != dependents_.end()) {
      at->second.erase(uid);
      if (at->second.empty()) dependents_.erase(at);
    }
  }
}

void Collector::on_change(const Change& change) {
  const bool has_same_owners =
      change.before && change.after && owners_of(*change.before) == owners_of(*change.after);
  if (!has_same_owners) {
    if (change.before) index(*change.before, false);
    if (change.after) index(*change.after, true);
  }
  if (!change.after) {
    enqueue_dependents(uid_of(*change.before));
    enqueue_owners(*change.before);
    if (!change.key.ns.empty())
      if (const Object ns = store_.find(kNamespaces, {"", change.key.ns}); ns && is_deleting(*ns))
        enqueue(uid_of(*ns));
    return;
  }
  if (!has_same_owners && change.before) enqueue_owners(*change.before);
  if (!has_same_owners || is_deleting(*change.after)) enqueue(uid_of(*change.after));
}

void Collector::step() {
  // Only objects that are due now are examined: those that this changes are due in the next step.
  for (std::size_t due = queue_.size(); due > 0; --due) {
    const std::string uid = std::move(queue_.front());
    queue_.pop_front();
    queued_.erase(uid);
    try {
      examine(uid);
    } catch (...) {  // the journal threw: it is due again
      enqueue(uid);
      throw;
    }
  }
}

void Collector::examine(const std::string& uid) {
  const ObjectStore::Place* place = store_.find_uid(uid);
  if (place == nullptr) return;
  const ObjectKey key = place->key;
  const ServedKind* kind = find_stored_kind(kinds_, *place->resource);
  const Object object = store_.find(*place->resource, key);
  if (kind == nullptr || !object) return;
  if (is_deleting(*object)) {
    if (kind->resource.has_same_objects(kNamespaces)) return examine_namespace(*object);
    if (release(*kind, *object)) return;
  }
  if (!owners_of(*object).empty()) examine_owners(*kind, key, *object);
}

// Returns whether a dependent exists that must be removed before this owner (blockOwnerDeletion).
bool Collector::is_blocked(const std::string& uid) const {
  const auto at = dependents_.find(uid);
  if (at == dependents_.end()) return false;
  return std::any_of(at->second.begin(), at->second.end(), [&](const std::string& dependent) {
    const auto* place = store_.find_uid(dependent);
    const Object object = place ? store_.find(*place->resource, place->key) : nullptr;
    if (!object) return false;
    const Json::Array& owners = owners_of(*object);
    return std::any_of(owners.begin(), owners.end(), [&uid](const Json& owner) {
      return owner.get_string("uid") == uid && owner.get_bool("blockOwnerDeletion");
    });
  });
}

bool Collector::release(const ServedKind& kind, const Json& object) {
  const std::string uid = uid_of(object);
  const ObjectKey key = key_of(object);
  if (has_finalizer(object, kOrphan)) {
    orphan_dependents(object);
    store(kind, key, without_finalizer(object, kOrphan));
    return true;
  }
  if (!has_finalizer(object, kForeground)) return false;
  if (is_blocked(uid)) {
    enqueue_dependents(uid);
    return false;
  }
  store(kind, key, without_finalizer(object, kForeground));
  return true;
}

void Collector::orphan_dependents(const Json& object) {
  const std::string uid = uid_of(object);
  const auto at = dependents_.find(uid);
  if (at == dependents_.end()) return;
  const std::set<std::string> dependents = at->second;
  for (const std::string& dependent : dependents) {
    const auto* place = store_.find_uid(dependent);
    const ServedKind* kind = place ? find_stored_kind(kinds_, *place->resource) : nullptr;
    if (kind == nullptr) continue;
    const ObjectKey key = place->key;
    const Object found = store_.find(kind->resource, key);
    store(*kind, key, without_owners(*found, [&uid](const Json& owner) {
      return owner.get_string("uid") == uid;
    }));
  }
}

void Collector::examine_owners(const ServedKind& kind, const ObjectKey& key, const Json& object) {
  bool has_solid = false;
  bool has_waiting = false;
  std::set<std::string> gone;  // uids of owners that do not exist, or wait for their dependents
  for (const Json& owner : owners_of(object)) {
    const std::string uid(owner.get_string("uid"));
    const auto* place = store_.find_uid(uid);
    // An owner is in the same namespace, or in none. An object without a namespace is not deleted
    // because of an owner in a namespace.
    const bool is_there =
        place && (place->key.ns.empty() || key.ns.empty() || place->key.ns == key.ns);
    const Object found = is_there ? store_.find(*place->resource, place->key) : nullptr;
    const bool is_waiting = found && is_deleting(*found) && has_finalizer(*found, kForeground);
    has_waiting = has_waiting || is_waiting;
    has_solid = has_solid || (found && !is_waiting);
    if (!found || is_waiting) gone.insert(uid);
  }
  if (has_solid && !gone.empty()) {
    store(kind, key, without_owners(object, [&gone](const Json& owner) {
            return gone.count(std::string(owner.get_string("uid"))) > 0;
          }));
  } else if (!has_solid && !is_deleting(object)) {
    const bool has_dependents = dependents_.count(uid_of(object)) > 0;
    const bool is_orphaning = has_finalizer(object, kOrphan);
    remove(kind, key,
           is_orphaning                    ? "Orphan"
           : has_waiting && has_dependents ? "Foreground"
                                           : "Background");
  }
}

void Collector::examine_namespace(const Json& ns) {
  const std::string name(ns.get("metadata").get_string("name"));
  bool is_empty = true;
  for (const ServedKind& kind : kinds_) {
    if (!kind.resource.namespaced || find_stored_kind(kinds_, kind.resource) != &kind) continue;
    std::vector<ObjectKey> keys;
    const auto& objects = store_.all(kind.resource);
    for (auto at = objects.lower_bound(ObjectKey{name, ""});
         at != objects.end() && at->first.ns == name; ++at)
      keys.push_back(at->first);
    for (const ObjectKey& key : keys) {
      const Object object = store_.find(kind.resource, key);
      if (object && !is_deleting(*object)) remove(kind, key, "Background");
      is_empty = is_empty && !store_.find(kind.resource, key);
    }
  }
  if (is_empty) store_.erase(kNamespaces, {"", name});
}

void Collector::remove(const ServedKind& kind, const ObjectKey& key, std::string_view propagation) {
  const Object object = store_.find(kind.resource, key);
  if (!object) return;
  const Json options = Json::object({{"propagationPolicy", propagation}});
  auto planned = plan_deletion(kind, *object, options, now_());
  if (!planned) return;
  if (planned->is_immediate) {
    store_.erase(kind.resource, key);
  } else {
    store_.put(kind.resource, std::move(planned->object));
  }
}

void Collector::store(const ServedKind& kind, const ObjectKey& key, Json object) {
  if (is_removable(kind, object)) {
    store_.erase(kind.resource, key);
  } else {
    store_.put(kind.resource, std::move(object));
  }
}

}  // namespace kube::server
