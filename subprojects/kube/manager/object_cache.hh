// The last known state of a collection: what client-go calls an informer's indexer.
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

// A cache of which the type of the items is not known: what a manager needs of each.
class AnyObjectCache : public WatchSink {
 public:
  // Takes what a write answered, unless the cache has a newer version or has seen the object's end.
  // What is not an object of this collection is ignored.
  virtual void update_if_newer(std::string_view answer) = 0;
  virtual std::size_t size() const = 0;
  // True once a first list has arrived.
  virtual bool is_synced() const = 0;
  // Called after every change, without what changed.
  virtual void add_change_handler(std::function<void()> handler) = 0;
};

// T is what a transform keeps of an object: any type with `std::string resource_version` and
// `ObjectKey key() const`.
//
// Guarantees: readers hold `std::shared_ptr<const T>`, which never changes; a relist becomes
// visible whole, before any handler is called, and keys it no longer has are reported as removed;
// an older version never replaces a newer one, and never brings back what has been deleted (a
// write's answer may arrive before its event, or after the event of a later deletion). The
// exception is a list older than what the watch had brought: a server that was restored from a
// backup, where what was cached never existed. Indexes are up to date before a handler is called.
// Concurrency: one thread. There is exactly one writer: the watcher, and update_if_newer() for what
// this process's own writes answered.
template <class T>
class ObjectCache final : public AnyObjectCache {
 public:
  using Item = T;
  using Pointer = std::shared_ptr<const T>;
  // nullptr for a malformed object. The text is one object's JSON.
  using Transform = std::function<std::shared_ptr<T>(std::string_view object)>;
  // `before` or `after` is nullptr when the object is new or deleted.
  using EventHandler = std::function<void(const Pointer& before, const Pointer& after)>;
  // The value under which an index finds an item; "" leaves it out.
  using IndexFunc = std::function<std::string_view(const T& item)>;

  explicit ObjectCache(Transform transform) : transform_(std::move(transform)) {}

  // Handlers are called in the order in which they were added.
  void add_event_handler(EventHandler handler) { handlers_.push_back(std::move(handler)); }

  void add_change_handler(std::function<void()> handler) override {
    add_event_handler([handler = std::move(handler)](const auto&, const auto&) { handler(); });
  }

  // Before the first object. An index is found by its name; adding one of a name that is there
  // changes nothing.
  void add_index(std::string_view name, IndexFunc value_of) {
    const bool exists = std::any_of(indexes_.begin(), indexes_.end(),
                                    [&](const Index& i) { return i.name == name; });
    if (!exists) indexes_.push_back({std::string(name), std::move(value_of), {}});
  }

  // The items of a namespace that have this value in an index, in the order of their names.
  std::vector<const T*> find_by(std::string_view index, std::string_view ns,
                                std::string_view value) const {
    std::vector<const T*> found;
    for (const Index& each : indexes_) {
      if (each.name != index) continue;
      const auto at = each.buckets.find(ObjectKeyView{ns, value});
      if (at == each.buckets.end()) break;
      found.reserve(at->second.size());
      for (const auto& [name, item] : at->second) found.push_back(item.get());
    }
    return found;
  }

  Pointer find(const ObjectKey& key) const {
    const auto at = items_.find(key);
    return at == items_.end() ? nullptr : at->second.item;
  }
  // In no order. `visit` takes (const ObjectKey&, const Pointer&) and must not change the store.
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
      // Nearly always the event of a write of this process: its answer has been read already.
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
    // The server orders by "namespace/name", which is nearly always the order of our keys, too.
    if (!std::is_sorted(listed.begin(), listed.end(), is_before))
      std::sort(listed.begin(), listed.end(), is_before);
    // A list has the newest state, and no event comes meanwhile. (What own writes answered may be
    // newer; it does not count as seen.)
    const bool is_restored = is_newer_version(seen_, list_version_);
    if (is_restored) {
      seen_ = list_version_;
    } else {
      advance(list_version_);
    }
    notify(merge(std::move(listed), is_restored));
  }

  bool remove(std::string_view object) override {
    const auto item = transform(object);
    if (!item) return false;
    advance(item->resource_version);
    const auto at = items_.find(item->key());
    if (at == items_.end()) return true;
    // A successor of the same name that this process created is newer than this deletion.
    if (is_newer_version(at->second.item->resource_version, item->resource_version)) return true;
    erase(at);
    return true;
  }

  void update_if_newer(std::string_view answer) override {
    if (auto item = transform(answer)) update_if_newer(Pointer(std::move(item)));
  }
  void update_if_newer(Pointer item) {
    const bool is_passed = !seen_.empty() && !is_newer_version(item->resource_version, seen_);
    // What the watch has passed and the cache does not hold was deleted.
    if (is_passed && items_.count(item->key()) == 0) return;
    replace(std::move(item));
  }

 private:
  // Names before items, as they are in one namespace and often compared.
  using Bucket = std::map<std::string, Pointer, std::less<>>;
  struct Index {
    std::string name;
    IndexFunc value_of;
    std::unordered_map<ObjectKey, Bucket, ObjectKeyHash, std::equal_to<>> buckets;  // ns and value
  };
  // An object, and the last list that had it.
  struct Held {
    Pointer item;
    std::size_t list = 0;
  };
  // In no order: each event looks one up, and an ordered map's comparisons walk from one cold
  // string to the next.
  using Items = std::unordered_map<ObjectKey, Held, ObjectKeyHash, std::equal_to<>>;
  using Changes = std::vector<std::pair<Pointer, Pointer>>;
  using Listed = std::pair<ObjectKey, Pointer>;
  static bool is_before(const Listed& a, const Listed& b) { return a.first < b.first; }

  // A transform that throws met an object it did not expect: that one is left out, the others are
  // kept.
  std::shared_ptr<T> transform(std::string_view object) {
    try {
      return transform_(object);
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  // What is cached of this object in the version that the text has, found without decoding it: a
  // relist of thousands reads the identity of each. nullptr where it must be decoded.
  Held* find_known(std::string_view object) {
    const auto identity = scan_identity(object);
    if (identity.name.empty() || identity.version.empty()) return nullptr;
    const auto at = items_.find(ObjectKeyView{identity.ns, identity.name});
    if (at == items_.end() || at->second.item->resource_version != identity.version) return nullptr;
    return &at->second;
  }

  // The list has this one.
  void confirm(Held& held) {
    if (held.list == list_) return;
    held.list = list_;
    ++confirmed_;
  }

  void advance(const std::string& version) {
    if (seen_.empty() || is_newer_version(version, seen_)) seen_ = version;
  }

  // Takes in what the list has and was not cached; `listed` is in order. Deletions are reported
  // first, then what is new or changed; both in the order of their keys.
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
    all.insert(all.end(), std::make_move_iterator(changes.begin()),
               std::make_move_iterator(changes.end()));
    return all;
  }

  // What is newer than the list was written while it was on its way, so the list says nothing about
  // it; unless versions went back (`is_restored`), which makes them incomparable.
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

  // Where versions went back (`is_restored`) any version but the one that is cached is taken.
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
  std::vector<Listed> listed_;  // of the list that comes in: what was not cached in that version
  std::size_t list_ = 0;        // the number of the last list, from 1
  std::size_t confirmed_ = 0;   // how many of `items_` that one has
  std::string list_version_;
  std::string seen_;  // the newest version the watch and its lists have brought
  bool is_listing_ = false;
  bool is_synced_ = false;
};

}  // namespace kube
