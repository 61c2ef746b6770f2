// The cache holds the last known state of a collection: client-go calls it an informer's indexer.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kube/client/json_scan.hh"
#include "kube/client/watcher.hh"
#include "kube/model/meta.hh"

namespace kube {

// This is a cache without its item type: a manager needs these functions of every cache.
class AnyObjectCache : public WatchSink {
 public:
  // Takes the answer of a write, unless the cache has a newer version or the object has been
  // deleted since. Anything that is not an object of this collection is ignored.
  virtual void update_if_newer(std::string_view answer) = 0;
  virtual std::size_t size() const = 0;
  // True once a first list has arrived.
  virtual bool is_synced() const = 0;
};

// T is the result of the transform of an object: any type with `std::string resource_version` and
// `ObjectKey key() const`.
//
// Guarantees: readers hold `std::shared_ptr<const T>`, which never changes; a relist becomes
// visible whole, before any handler is called, and keys that it does not have are reported as
// removed; an older version never replaces a newer one, and never brings back a deleted object (a
// write's answer may arrive before its event, or after the event of a later deletion). The
// exception is a list that is older than the last watch event: the API server was restored from a
// backup, and the cached newer objects do not exist there. Indexes are up to date before a handler
// is called. Concurrency: one thread. Only the watcher writes, and update_if_newer() for the
// answers of this process's own writes.
template <class T>
class ObjectCache final : public AnyObjectCache {
 public:
  using Item = T;
  using Pointer = std::shared_ptr<const T>;
  // It returns nullptr for a malformed object. The text is one object's JSON.
  using Transform = std::function<std::shared_ptr<T>(std::string_view object)>;
  // `before` or `after` is nullptr when the object is new or deleted.
  using EventHandler = std::function<void(const Pointer& before, const Pointer& after)>;
  // It returns the value under which an index finds an item; "" leaves the item out.
  using IndexFunc = std::function<std::string_view(const T& item)>;

  explicit ObjectCache(Transform transform) : transform_(std::move(transform)) {}

  // Handlers are called in the order in which they were added.
  void add_event_handler(EventHandler handler) { handlers_.push_back(std::move(handler)); }

  // Call this before the first object. Adding an index of the same name again does nothing.
  void add_index(std::string_view name, IndexFunc value_of) {
    if (std::ranges::find(indexes_, name, &Index::name) == indexes_.end())
      indexes_.push_back({std::string(name), std::move(value_of), {}});
  }

  // A bucket is ordered by name: its items are in one namespace.
  using Bucket = std::map<std::string, Pointer, std::less<>>;

  // Returns the items of a namespace that have this value in an index, in the order of their names.
  std::vector<const T*> find_by(std::string_view index, std::string_view ns,
                                std::string_view value) const {
    std::vector<const T*> found;
    if (const Bucket* const bucket = bucket_of(index, ns, value)) {
      found.reserve(bucket->size());
      for (const auto& [name, item] : *bucket) found.push_back(item.get());
    }
    return found;
  }
  // Returns the same without a copy; it is valid until the next change of the cache. nullptr says
  // that there is none.
  const Bucket* bucket_of(std::string_view index, std::string_view ns,
                          std::string_view value) const {
    for (const Index& each : indexes_) {
      if (each.name != index) continue;
      const auto at = each.buckets.find(ObjectKeyView{ns, value});
      if (at != each.buckets.end()) return &at->second;
    }
    return nullptr;
  }

  Pointer find(const ObjectKey& key) const {
    const auto at = items_.find(key);
    return at == items_.end() ? nullptr : at->second.item;
  }
  // Visits the items in no order. `visit` takes (const ObjectKey&, const Pointer&) and must not
  // change the cache.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const auto& [key, held] : items_) visit(key, held.item);
  }
  std::size_t size() const override { return items_.size(); }
  bool is_synced() const override { return is_synced_; }

  void begin_list() override {
    ++list_;
    confirmed_ = 0;
    listed_.clear();
    list_version_.clear();
    is_listing_ = true;
  }

  bool upsert(std::string_view object) override {
    if (Held* const known = find_known(object)) {
      // This is nearly always the event of a write of this process, whose answer is in the cache
      // already.
      if (is_listing_) {
        confirm(*known);
      } else {
        advance(known->item->resource_version);
      }
      return true;
    }
    auto item = transform(object);
    if (!item) return false;
    if (is_listing_) {
      ObjectKey key = item->key();
      listed_.emplace_back(std::move(key), std::move(item));
    } else {
      advance(item->resource_version);
      replace(std::move(item));
    }
    return true;
  }

  void listed_at(std::string_view version) override { list_version_ = version; }

  void end_list() override {
    is_listing_ = false;
    is_synced_ = true;
    auto listed = std::exchange(listed_, {});
    // The server orders by "namespace/name", which is nearly always the order of ObjectKeys too.
    if (!std::is_sorted(listed.begin(), listed.end(), is_before))
      std::sort(listed.begin(), listed.end(), is_before);
    // A list has the newest state, and no event comes meanwhile. (Answers of own writes may be
    // newer; they do not advance `seen_`.)
    const bool is_restored = is_newer_version(seen_, list_version_);
    if (is_restored) {
      seen_ = list_version_;
    } else {
      advance(list_version_);
    }
    notify(merge(std::move(listed), is_restored));
  }

  bool remove(std::string_view object) override {
    // The object is not decoded: it may be impossible to decode its last state, and it is gone in
    // any case.
    const auto identity = scan_identity(object);
    if (identity.name.empty()) return false;
    const std::string version(identity.version);
    advance(version);
    const auto at = items_.find(ObjectKeyView{identity.ns, identity.name});
    if (at == items_.end()) return true;
    // A successor of the same name that this process created is newer than this deletion.
    if (is_newer_version(at->second.item->resource_version, version)) return true;
    erase(at);
    return true;
  }

  void update_if_newer(std::string_view answer) override {
    if (auto item = transform(answer)) update_if_newer(Pointer(std::move(item)));
  }
  void update_if_newer(Pointer item) {
    const bool is_passed = !seen_.empty() && !is_newer_version(item->resource_version, seen_);
    // This version is older than the watch's, and its object is not cached: the object was deleted.
    if (is_passed && items_.count(item->key()) == 0) return;
    replace(std::move(item));
  }

 private:
  struct Index {
    std::string name;
    IndexFunc value_of;
    std::unordered_map<ObjectKey, Bucket, ObjectKeyHash, std::equal_to<>> buckets;  // ns and value
  };
  // This is an object, and the number of the last list that had it.
  struct Held {
    Pointer item;
    std::size_t list = 0;
  };
  // The map is not ordered: each event needs a lookup, and an ordered map compares strings in cold
  // memory at each step.
  using Items = std::unordered_map<ObjectKey, Held, ObjectKeyHash, std::equal_to<>>;
  using Changes = std::vector<std::pair<Pointer, Pointer>>;
  using Listed = std::pair<ObjectKey, Pointer>;
  static bool is_before(const Listed& a, const Listed& b) { return a.first < b.first; }

  // A transform that throws does not support this object: that object is left out, the others are
  // kept.
  std::shared_ptr<T> transform(std::string_view object) {
    try {
      return transform_(object);
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  // Returns the cached item if it has the same version as the text. Only the identity is read, so a
  // relist of thousands decodes nothing. nullptr says that the text must be decoded.
  Held* find_known(std::string_view object) {
    const auto identity = scan_identity(object);
    if (identity.name.empty() || identity.version.empty()) return nullptr;
    const auto at = items_.find(ObjectKeyView{identity.ns, identity.name});
    if (at == items_.end() || at->second.item->resource_version != identity.version) return nullptr;
    return &at->second;
  }

  void confirm(Held& held) {
    if (held.list == list_) return;
    held.list = list_;
    ++confirmed_;
  }

  void advance(const std::string& version) {
    if (seen_.empty() || is_newer_version(version, seen_)) seen_ = version;
  }

  // Takes the items of the list that are new or changed; `listed` is sorted. Deletions are reported
  // first, then new and changed items, both in the order of their keys.
  Changes merge(std::vector<Listed> listed, bool is_restored) {
    if (items_.empty()) items_.reserve(listed.size());
    Changes changes;
    for (Listed& each : listed) {
      Held& held = items_.try_emplace(std::move(each.first)).first->second;
      confirm(held);
      take(held.item, std::move(each.second), is_restored, changes);
    }
    if (confirmed_ == items_.size()) return changes;
    Changes all = drop_unlisted(is_restored);
    std::ranges::move(changes, std::back_inserter(all));
    return all;
  }

  // Drops the items that the list does not have. An item newer than the list was written after it,
  // and is kept, unless versions went back (`is_restored`) and cannot be compared.
  Changes drop_unlisted(bool is_restored) {
    std::vector<Listed> dropped;
    for (auto at = items_.begin(); at != items_.end();) {
      Held& held = at->second;
      if (held.list == list_ || (!is_restored && is_newer_than_list(*held.item))) {
        ++at;
      } else {
        unindex(*held.item);
        dropped.emplace_back(at->first, std::move(held.item));
        at = items_.erase(at);
      }
    }
    std::sort(dropped.begin(), dropped.end(), is_before);
    Changes gone;
    for (Listed& each : dropped) gone.emplace_back(std::move(each.second), nullptr);
    return gone;
  }

  bool is_newer_than_list(const T& item) const {
    return !list_version_.empty() && is_newer_version(item.resource_version, list_version_);
  }

  // If versions went back (`is_restored`), any version but the cached one is taken.
  void take(Pointer& slot, Pointer item, bool is_restored, Changes& changes) {
    if (slot) {
      const std::string& held = slot->resource_version;
      const std::string& got = item->resource_version;
      if (is_restored ? got == held : !is_newer_version(got, held)) return;
    }
    Pointer before = std::exchange(slot, std::move(item));
    reindex(before, slot);
    changes.emplace_back(std::move(before), slot);
  }

  void replace(Pointer item) {
    Changes changes;
    Held& held = items_[item->key()];
    take(held.item, std::move(item), false, changes);
    notify(changes);
  }

  void erase(typename Items::iterator at) {
    const Pointer before = std::move(at->second.item);
    if (at->second.list == list_) --confirmed_;
    items_.erase(at);
    unindex(*before);
    notify(before, nullptr);
  }

  void reindex(const Pointer& before, const Pointer& after) {
    if (indexes_.empty()) return;
    const ObjectKey key = after->key();
    for (Index& index : indexes_) {
      const std::string_view value = index.value_of(*after);
      if (before && index.value_of(*before) != value) remove_from(index, *before, key);
      if (value.empty()) continue;
      auto at = index.buckets.find(ObjectKeyView{key.ns, value});
      if (at == index.buckets.end())
        at = index.buckets.try_emplace({key.ns, std::string(value)}).first;
      at->second[key.name] = after;
    }
  }
  void unindex(const T& item) {
    if (indexes_.empty()) return;
    const ObjectKey key = item.key();
    for (Index& index : indexes_) remove_from(index, item, key);
  }
  static void remove_from(Index& index, const T& item, const ObjectKey& key) {
    const auto at = index.buckets.find(ObjectKeyView{key.ns, index.value_of(item)});
    if (at == index.buckets.end()) return;
    at->second.erase(key.name);
    if (at->second.empty()) index.buckets.erase(at);
  }

  void notify(const Pointer& before, const Pointer& after) const {
    for (const EventHandler& handler : handlers_) handler(before, after);
  }
  void notify(const Changes& changes) const {
    for (const auto& [before, after] : changes) notify(before, after);
  }

  Transform transform_;
  std::vector<EventHandler> handlers_;
  std::vector<Index> indexes_;
  Items items_;
  std::vector<Listed> listed_;  // the items of the current list that are not cached in that version
  std::size_t list_ = 0;        // the number of the last list, from 1
  std::size_t confirmed_ = 0;   // the number of `items_` that the current list has
  std::string list_version_;
  std::string seen_;  // the newest version the watch and its lists have brought
  bool is_listing_ = false;
  bool is_synced_ = false;
};

}  // namespace kube
