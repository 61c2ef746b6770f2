// A process watches these collections, each once.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kube/manager/object_cache.hh"
#include "kube/model/meta.hh"

namespace kube {

// A collection is what one watch covers: a resource, or those of its objects that a label selector
// matches. Two watches are one if both are equal.
struct Collection {
  Resource resource;
  // Equality-based: "key", "!key", "key=value", "key!=value", joined by commas. "": all objects.
  std::string label_selector;
  friend bool operator==(const Collection&, const Collection&) = default;
};

// Concurrency: the control loops' thread.
class CacheSet {
 public:
  using MakeCache = std::function<std::unique_ptr<AnyObjectCache>()>;
  struct Entry {
    Collection collection;
    std::unique_ptr<AnyObjectCache> cache;
    bool is_required = false;  // if it is false, the process is ready while the kind is not served
    bool is_unserved = false;
    bool is_interrupted =
        false;  // its watch is interrupted: objects may have changed or gone since
    // The time of its watch's last message.
    std::optional<std::chrono::steady_clock::time_point> heard_at{};
  };

  // Returns the cache of this collection, and makes it if there is none yet.
  AnyObjectCache& add(const Collection& collection, const MakeCache& make, bool is_required);

  // Errors: std::logic_error if the collection was not added, or was added with another type.
  template <class T>
  const ObjectCache<T>& get(const Collection& collection) const {
    const Entry* const entry = find(collection);
    const auto* const typed =
        entry ? dynamic_cast<const ObjectCache<T>*>(entry->cache.get()) : nullptr;
    if (!typed) throw std::logic_error("no cache of this type of " + collection.resource.plural);
    return *typed;
  }

  // Takes the answer of a write into every cache of the resource whose selector matches it.
  void update_if_newer(const Resource& resource, std::string_view answer);
  bool are_synced() const;
  // Returns whether a watch of this resource is interrupted.
  bool is_interrupted(const Resource& resource) const;
  const std::vector<std::unique_ptr<Entry>>& entries() const { return entries_; }

 private:
  Entry* find(const Collection& collection) const;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace kube
