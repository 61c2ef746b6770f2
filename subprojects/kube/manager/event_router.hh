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

// The router has the queues of all controllers, and an owner index for each: uid -> key.
// Controllers of several versions of one resource have the same uids. Concurrency: the control
// loops' thread.
class EventRouter {
 public:
  using Enqueue = std::function<void(const ObjectKey& key, Debounce debounce)>;

  EventRouter() = default;
  EventRouter(const EventRouter&) = delete;
  EventRouter& operator=(const EventRouter&) = delete;

  // Returns the controller's id.
  std::size_t add_controller(Enqueue enqueue) {
    queues_.push_back(std::move(enqueue));
    owners_.emplace_back();
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
    const auto at = owners_[controller].find(uid);
    return at != owners_[controller].end() && at->second.ns == ns ? &at->second : nullptr;
  }
  // Enqueues that object. Returns false if there is none.
  bool enqueue_owner(std::size_t controller, std::string_view ns, const std::string& uid,
                     Debounce debounce) {
    const ObjectKey* const key = find_owner(controller, ns, uid);
    if (key) enqueue(controller, *key, debounce);
    return key != nullptr;
  }

  void set_owner(std::size_t controller, const std::string& uid, ObjectKey key) {
    owners_[controller][uid] = std::move(key);
  }
  void remove_owner(std::size_t controller, const std::string& uid) {
    owners_[controller].erase(uid);
  }

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
  std::vector<std::unordered_map<std::string, ObjectKey>> owners_;  // by controller
  ChangeSource source_ = ChangeSource::kOthers;
};

}  // namespace kube
