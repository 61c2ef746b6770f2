// The router decides which queues an event reaches, and when.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kube/manager/pacing.hh"
#include "kube/model/meta.hh"

namespace kube {

// The source says which write made the version that event handlers see: one of another client, a
// status of this process, or a status of this process that only changed counters.
enum class ChangeSource { kOthers, kOwnStatus, kOwnCounters };

// The router has the queues of all controllers, and the owner index: uid -> (controller, key).
// Concurrency: the control loops' thread.
class EventRouter {
 public:
  using Enqueue = std::function<void(const ObjectKey& key, Debounce debounce)>;
  struct Owner {
    std::size_t controller;
    ObjectKey key;
  };

  EventRouter() = default;
  EventRouter(const EventRouter&) = delete;
  EventRouter& operator=(const EventRouter&) = delete;

  // Returns the controller's id.
  std::size_t add_controller(Enqueue enqueue) {
    queues_.push_back(std::move(enqueue));
    return queues_.size() - 1;
  }
  void enqueue(std::size_t controller, const ObjectKey& key, Debounce debounce) {
    queues_[controller](key, debounce);
  }
  // Returns the key of the object of this uid among those that `controller` reconciles, or nullptr.
  // `ns` is the namespace of the object that names the uid as its owner. Any user can write any uid
  // into an owner reference, and the garbage collector counts only owners of the same namespace.
  const ObjectKey* find_owner(std::size_t controller, std::string_view ns,
                              const std::string& uid) const {
    const auto at = owners_.find(uid);
    if (at == owners_.end()) return nullptr;
    const Owner& owner = at->second;
    return owner.controller == controller && owner.key.ns == ns ? &owner.key : nullptr;
  }
  // Enqueues that object. Returns false if there is none.
  bool enqueue_owner(std::size_t controller, std::string_view ns, const std::string& uid,
                     Debounce debounce) {
    const ObjectKey* const key = find_owner(controller, ns, uid);
    if (key) enqueue(controller, *key, debounce);
    return key != nullptr;
  }

  void set_owner(const std::string& uid, Owner owner) { owners_[uid] = std::move(owner); }
  void remove_owner(const std::string& uid) { owners_.erase(uid); }

  ChangeSource source() const { return source_; }
  // Returns the debounce of the change that handlers see. nullopt says that no reconcile is needed,
  // since this process wrote the change, and only counters changed.
  std::optional<Debounce> debounce_of_change() const {
    if (source_ == ChangeSource::kOwnCounters) return std::nullopt;
    return source_ == ChangeSource::kOwnStatus ? Debounce::kShort : Debounce::kNone;
  }

  // While a scope lives, changes come from a status of this process.
  class SourceScope {
   public:
    SourceScope(EventRouter& router, ChangeSource source) : router_(router) {
      router_.source_ = source;
    }
    SourceScope(const SourceScope&) = delete;
    SourceScope& operator=(const SourceScope&) = delete;
    ~SourceScope() { router_.source_ = ChangeSource::kOthers; }

   private:
    EventRouter& router_;
  };

 private:
  std::vector<Enqueue> queues_;
  std::unordered_map<std::string, Owner> owners_;
  ChangeSource source_ = ChangeSource::kOthers;
};

}  // namespace kube
