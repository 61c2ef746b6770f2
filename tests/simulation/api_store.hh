// The API server of a simulated cluster has the kinds that the controllers use, and knows for whom
// each of its objects is written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/server/api.hh"
#include "kube/server/object_store.hh"
#include "tests/simulation/timeline.hh"

namespace trainer::simulation {

using kube::server::Object;

// Writes are made for one of these.
enum class Actor { kController, kCluster, kUser };
std::string_view name_of(Actor actor);

struct Answer {
  int status = 200;
  kube::Json body;
  bool is_ok() const { return status < 300; }
};

struct Change {
  Actor actor = Actor::kCluster;
  const kube::Resource& resource;
  kube::ObjectKey key;
  Object before;  // nullptr: created
  Object after;   // nullptr: gone
  const kube::server::Change& stored;
};

class ApiStore {
 public:
  using Observer = std::function<void(const Change& change)>;
  using Collection = kube::server::ObjectStore::Collection;

  explicit ApiStore(const Timeline& timeline);
  ApiStore(const ApiStore&) = delete;
  ApiStore& operator=(const ApiStore&) = delete;

  // nullptr for a kind that this cluster does not serve.
  const kube::Resource* find_kind(std::string_view plural) const;
  const Collection& all(std::string_view plural) const;
  Object find(std::string_view plural, const kube::ObjectKey& key) const;
  bool exists(const std::string& uid) const { return objects_.find_uid(uid) != nullptr; }

  // This is a request from the network. The JobSet's defaulting webhook takes part in it.
  kube::server::Outcome handle(Actor actor, kube::server::Request request);
  Answer create(Actor actor, const kube::Resource& resource, kube::Json object);
  Answer merge(Actor actor, const kube::Resource& resource, const kube::ObjectKey& key,
               const kube::Json& patch, std::string_view subresource);
  // `options` is a DeleteOptions.
  Answer remove(Actor actor, const kube::Resource& resource, const kube::ObjectKey& key,
                const kube::Json& options);
  // The cluster's own parts write in this way: the whole object, without any rule. An object that
  // is being deleted is removed with its last finalizer.
  void replace(std::string_view plural, kube::Json object);
  void erase(Actor actor, std::string_view plural, const kube::ObjectKey& key);

  // Called after every change, in the order of subscription.
  void subscribe(Observer observer) { observers_.push_back(std::move(observer)); }
  std::int64_t version() const { return objects_.version(); }
  // Drops the history: watches from before this moment get 410.
  void compact(std::string_view plural) { objects_.compact(*find_kind(plural)); }

  // Components that write for the cluster need these.
  const kube::server::ServedKinds& kinds() const { return kinds_; }
  kube::server::ObjectStore& objects() { return objects_; }

 private:
  Answer send(Actor actor, kube::server::Request request);
  const kube::server::ServedKind& kind_of(std::string_view plural) const;

  const kube::server::ServedKinds kinds_;
  kube::server::ObjectStore objects_;
  kube::server::Api api_;
  std::vector<Observer> observers_;
  Actor actor_ = Actor::kCluster;  // the actor of the write in progress
  std::int64_t made_ = 0;
};

}  // namespace trainer::simulation
