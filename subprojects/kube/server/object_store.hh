// The store has the objects of an API server, with versions, a history for watches, and observers.
// It holds only these rules of the API: a write makes a new resourceVersion, and a history is
// finite.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"

namespace kube::server {

using Object = std::shared_ptr<const Json>;

// Both functions read the metadata of a whole object.
ObjectKey key_of(const Json& object);
std::string uid_of(const Json& object);

// These limits bound what a client may store: `max_bytes` is etcd's bound of a request, which
// kube-apiserver uses too. The clients of the server read objects within lists, watch events,
// Tables and admission reviews. These are a few levels and values larger, so they are read by
// kObjectLimits.
inline constexpr JsonLimits kStoredLimits{.max_bytes = 1'572'864,
                                          .max_depth = kObjectLimits.max_depth - 10,
                                          .max_values = kObjectLimits.max_values - 1'000};

// Returns the text of an object, once it has been read back. Errors: kTooLarge for more bytes than
// the limits, kInvalid for a text that the reader of JSON refuses: too deep, too many values, no
// UTF-8.
Result<std::string> readable_text(const Json& object, const JsonLimits& limits);

// The store holds an object as a Json, or as its text, which needs a sixth of the memory.
class Held {
 public:
  Held() = default;  // it holds no object
  explicit Held(Object object) : object_(std::move(object)) {}
  // `text` is the object's text, and was read before, so that get() can read it.
  Held(Object object, std::shared_ptr<const std::string> text)
      : text_(std::move(text)), used_(object) {}
  // Returns nullptr if there is none. A text is parsed, unless a caller still holds the object of
  // an earlier call.
  Object get() const;
  // The result is a temporary: use it in this expression only.
  Object operator->() const { return get(); }

 private:
  Object object_;
  std::shared_ptr<const std::string> text_;
  mutable std::weak_ptr<const Json> used_;
};

// This is one change of one object.
struct Change {
  std::int64_t version = 0;  // increases by one with each change of the store
  const Resource* resource = nullptr;
  ObjectKey key;
  Object before;  // nullptr: created
  Object after;   // nullptr: deleted
  // Watches show this: `after`, or after a deletion the last state with the version of the
  // deletion.
  Object state;
  // This is the text of `after`, made by readable_text(); nullptr in a store of kObjects without a
  // journal.
  std::shared_ptr<const std::string> text;
  std::string_view type() const { return !before ? "ADDED" : after ? "MODIFIED" : "DELETED"; }
};

// Concurrency: one thread. Observers run inside the write, in the order of subscription; they may
// not write.
class ObjectStore {
 public:
  using Collection = std::map<ObjectKey, Held>;
  // kObjects is quick to use. kTexts takes less memory, for a process whose memory is mostly this
  // store.
  enum class Form { kObjects, kTexts };
  using Observer = std::function<void(const Change& change)>;

  // `max_history` is the number of changes of a collection that watches may still ask for.
  explicit ObjectStore(std::int64_t version = 1, std::size_t max_history = 5'000,
                       Form form = Form::kObjects);

  // Makes a collection known, by group and plural. Others are empty and cannot be written.
  void add_collection(const Resource& resource);
  const Collection& all(const Resource& resource) const;
  Object find(const Resource& resource, const ObjectKey& key) const;
  // This is the object's resource and key; nullptr if no object has this uid.
  struct Place {
    const Resource* resource = nullptr;
    ObjectKey key;
  };
  const Place* find_uid(std::string_view uid) const;
  std::int64_t version() const { return version_; }

  // Stores the object, which has a name and a uid, with the next resourceVersion, and returns the
  // stored object. It replaces one of the same key. An object that is equal to the stored one
  // except for resourceVersion is not written. Errors are those of readable_text(): nothing is
  // stored. Only a store of kObjects without a journal, whose objects are not read back, stores any
  // object.
  Result<Object> put(const Resource& resource, Json object, const JsonLimits& limits = {});
  // Removes it. Returns nullptr if it does not exist.
  Object erase(const Resource& resource, const ObjectKey& key);
  // Puts back the text that a journal has kept, with its resourceVersion, without observers or
  // history. Errors (kInvalid): the text cannot be read, or is not that of a whole object of this
  // kind and key whose uid no other has.
  Result<void> restore(const Resource& resource, const ObjectKey& key, std::string text);

  // The journal is called with each change before it is made, and stores the change's text. Its
  // exceptions leave put() and erase(), and the store stays unchanged.
  void set_journal(Observer journal) { journal_ = std::move(journal); }
  void subscribe(Observer observer) { observers_.push_back(std::move(observer)); }
  // Returns the changes of a collection after `version`, oldest first; nullopt if some of them have
  // been dropped (410).
  std::optional<std::vector<Change>> changes_since(const Resource& resource,
                                                   std::int64_t version) const;
  // Drops the history: watches from before this moment get 410.
  void compact(const Resource& resource);

 private:
  // This is one change in the history, with the members of Change.
  struct Past {
    std::int64_t version = 0;
    ObjectKey key;
    Held before, after;
    Object state() const;
  };
  struct Stored {
    Resource resource;
    Collection objects;
    std::deque<Past> history;
    std::int64_t dropped = 0;  // the version of the last change that the history lacks
  };
  Stored& stored(const Resource& resource);
  const Stored* find_stored(const Resource& resource) const;
  Held held(Object object, std::shared_ptr<const std::string> text) const;
  void publish(Stored& stored, const Change& change);

  std::map<std::string, Stored, std::less<>> collections_;  // by "GROUP/PLURAL"
  std::unordered_map<std::string, Place> places_;           // by uid
  Observer journal_;
  std::vector<Observer> observers_;
  std::int64_t version_;
  std::int64_t start_;  // no collection has a history from before it
  std::size_t max_history_;
  bool is_text_;
};

}  // namespace kube::server
