// The last known state of a collection, as projections made on ingest.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
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

// T is what remains of an object: any type with `std::string resource_version` and `ObjectKey key()
// const`.
//
// Guarantees: readers hold `std::shared_ptr<const T>`, which nobody changes; a relist becomes
// visible whole, before any change of it is told, and keys it no longer has are reported as
// removed; an older version never replaces a newer one, and never brings back what has been deleted
// (a write's answer may arrive before its event, or after the event of a later deletion). The
// exception is a list older than what the watch had brought: a server that was restored from a
// backup, where what we held never was.
// Concurrency: one thread. There is exactly one writer: the watcher, and offer() and forget() for
// what our own writes answered.
template <class T>
class ObjectCache final : public WatchSink {
 public:
  using Pointer = std::shared_ptr<const T>;
  // nullptr for a malformed object. The text is one object's JSON.
  using Transform = std::function<std::shared_ptr<T>(std::string_view object)>;
  // `before` or `after` is nullptr when the object is new or gone.
  using OnChange = std::function<void(const Pointer& before, const Pointer& after)>;

  ObjectCache(Transform transform, OnChange on_change)
      : transform_(std::move(transform)), on_change_(std::move(on_change)) {}

  Pointer find(const ObjectKey& key) const {
    const auto at = items_.find(key);
    return at == items_.end() ? nullptr : at->second.item;
  }
  // In no order. `visit` takes (const ObjectKey&, const Pointer&) and must not change the store.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const auto& [key, held] : items_) visit(key, held.item);
  }
  std::size_t size() const { return items_.size(); }
  // True once a first list has arrived.
  bool is_synced() const { return is_synced_; }
  std::size_t malformed() const { return malformed_; }

  void begin_list() override {
    ++list_;
    confirmed_ = 0;
    listed_.clear();
    list_version_.clear();
    is_listing_ = true;
  }

  bool upsert(std::string_view object) override {
    if (Held* const known = find_known(object)) {
      // Nearly always the echo of a write of our own: reading it again would tell nothing.
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
    // A list tells the newest state there is, and the watch stands still meanwhile. (What our own
    // writes answered may be newer; it does not count as seen.)
    const bool is_restored = is_newer_version(seen_, list_version_);
    if (is_restored) {
      seen_ = list_version_;
    } else {
      advance(list_version_);
    }
    tell(merge(std::move(listed), is_restored));
  }

  bool remove(std::string_view object) override {
    const auto item = transform(object);
    if (!item) return false;
    advance(item->resource_version);
    const auto at = items_.find(item->key());
    if (at == items_.end()) return true;
    // A successor of the same name that we created ourselves is newer than this end.
    if (is_newer_version(at->second.item->resource_version, item->resource_version)) return true;
    erase(at);
    return true;
  }

  // Takes a state learnt elsewhere, such as the answer to a write, unless the store has a newer one
  // or has seen its end.
  void update_if_newer(Pointer item) {
    const bool is_passed = !seen_.empty() && !is_newer_version(item->resource_version, seen_);
    // What the watch has passed and the store does not hold was deleted.
    if (is_passed && items_.count(item->key()) == 0) return;
    replace(std::move(item));
  }

  // Drops an object that a write of ours has ended. An event that was still on its way may bring it
  // back until its end arrives.
  void forget(const ObjectKey& key) {
    const auto at = items_.find(key);
    if (at != items_.end()) erase(at);
  }

 private:
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

  // A projection that throws met an object it did not expect: that one is left out, the others go
  // on.
  std::shared_ptr<T> transform(std::string_view object) {
    std::shared_ptr<T> item;
    try {
      item = transform_(object);
    } catch (const std::exception&) {
      item = nullptr;
    }
    if (!item) ++malformed_;
    return item;
  }

  // What is held of this object in the version that the text has, found without decoding it; a
  // relist of thousands costs a look at each. nullptr where it must be read.
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

  // Takes in what the list has and was not known; `listed` is in order. What is gone is told first,
  // then what came or changed; both in the order of their keys.
  Changes merge(std::vector<Listed> listed, bool is_restored) {
    if (items_.empty()) items_.reserve(listed.size());
    Changes changes;
    for (Listed& each : listed) {
      Held& held = items_.try_emplace(std::move(each.first)).first->second;
      confirm(held);
      take(held.item, std::move(each.second), is_restored, changes);
    }
    if (confirmed_ == items_.size()) return changes;
    Changes told = drop_unlisted(is_restored);
    told.insert(told.end(), std::make_move_iterator(changes.begin()),
                std::make_move_iterator(changes.end()));
    return told;
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

  // Where versions went back (`is_restored`) any other one than the one that is held is taken.
  void take(Pointer& slot, Pointer item, bool is_restored, Changes& changes) {
    if (slot) {
      const std::string& held = slot->resource_version;
      const std::string& got = item->resource_version;
      if (is_restored ? got == held : !is_newer_version(got, held)) return;
    }
    Pointer before = std::exchange(slot, std::move(item));
    changes.emplace_back(std::move(before), slot);
  }

  void replace(Pointer item) {
    Changes changes;
    Held& held = items_[item->key()];
    take(held.item, std::move(item), false, changes);
    tell(changes);
  }

  void erase(typename Items::iterator at) {
    const Pointer before = std::move(at->second.item);
    if (at->second.list == list_) --confirmed_;
    items_.erase(at);
    on_change_(before, nullptr);
  }

  void tell(const Changes& changes) const {
    for (const auto& [before, after] : changes) on_change_(before, after);
  }

  Transform transform_;
  OnChange on_change_;
  Items items_;
  std::vector<Listed> listed_;  // of the list that comes in: what was not held in that version
  std::size_t list_ = 0;        // the number of the last list, from 1
  std::size_t confirmed_ = 0;   // how many of `items_` that one has
  std::string list_version_;
  std::string seen_;  // the newest version the watch and its lists have brought
  bool is_listing_ = false;
  bool is_synced_ = false;
  std::size_t malformed_ = 0;
};

}  // namespace kube
