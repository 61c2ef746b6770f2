// Plans read these objects by name, since no cache has them. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace kube {

// This names one object, for the plan that asks for it.
struct NamedObject {
  Resource resource;
  ObjectKey key;
  friend bool operator==(const NamedObject&, const NamedObject&) = default;
};

// A stamp is the state of the reconciled object when something was read for it. A plan compares the
// stamp of what it knows with the stamp of now, and asks again for what is outdated.
struct ReadStamp {
  // The state of the object itself, such as a hash of its generation and labels.
  std::uint64_t shape = 0;
  std::uint64_t child = 0;    // the child that makes the pods, such as a hash of its uid
  std::int64_t failures = 0;  // the number of restarts or failed pods so far
  friend bool operator==(const ReadStamp&, const ReadStamp&) = default;
};

// A kind makes this content from an object once, when the object is read.
struct ReadContent {
  virtual ~ReadContent() = default;
};

// This is an object in the form in which it was read or written last.
struct ReadObject {
  std::shared_ptr<const Json> object;  // null where there is no such object
  std::shared_ptr<const ReadContent> content;
  std::string controller_uid;  // the uid of the object's controller owner; "" without one
  std::string error;  // the reason why it could not be read; "" for an object, and if there is none
  ReadStamp stamp;
  bool is_new = false;  // it was read in this reconcile

  bool exists() const { return object || content; }
};

// This holds what is known of the named objects of one reconciled object. Most reconciled objects
// have none, and a JobSet may have thousands of claims.
class NamedObjects {
 public:
  struct Entry {
    Resource resource;
    ReadObject read;
    bool is_known = true;
  };
  using Entries = std::multimap<std::string, Entry, std::less<>>;  // by name

  // Returns nullptr if nothing is known. The pointer is valid until the next change.
  const ReadObject* find(const Resource& resource, std::string_view name) const {
    const auto at = place_of(entries_, resource, name);
    return at != entries_.end() && at->second.is_known ? &at->second.read : nullptr;
  }
  const Entries& entries() const { return entries_; }
  // Returns true until the first plan of this process has run: before, this process has written
  // nothing.
  bool is_first_plan() const { return is_first_plan_; }

  void set(const NamedObject& named, ReadObject read) {
    auto at = place_of(entries_, named.resource, named.key.name);
    if (at == entries_.end()) at = entries_.emplace(named.key.name, Entry{named.resource, {}});
    at->second.read = std::move(read);
    at->second.is_known = true;
  }
  void forget(const Resource& resource, std::string_view name) {
    const auto at = place_of(entries_, resource, name);
    if (at != entries_.end()) entries_.erase(at);
  }
  void forget_all() { entries_.clear(); }
  // Marks everything to be read again. Until then the content is kept, so that it need not be
  // decoded again if it is the same.
  void invalidate_all() {
    for (auto& [name, each] : entries_) each.is_known = false;
  }
  // Another reconcile begins.
  void age() {
    for (auto& [name, each] : entries_) each.read.is_new = false;
  }
  void end_first_plan() { is_first_plan_ = false; }

 private:
  // Returns the entry of this object, or the end. Few objects have the same name.
  template <class Some>
  static auto place_of(Some& entries, const Resource& resource, std::string_view name)
      -> decltype(entries.begin()) {
    for (auto at = entries.lower_bound(name); at != entries.end() && at->first == name; ++at) {
      if (at->second.resource.has_same_objects(resource)) return at;
    }
    return entries.end();
  }

  Entries entries_;
  bool is_first_plan_ = true;
};

}  // namespace kube
