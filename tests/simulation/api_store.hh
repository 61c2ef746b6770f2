// The objects of a cluster, with the behaviour of the API server: versions, conditional writes,
// subresources, server-side apply, finalizers and a history for watches.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "tests/simulation/timeline.hh"

namespace trainer::simulation {

using Object = std::shared_ptr<const kube::Json>;

// On whose behalf something is written.
enum class Actor { kController, kCluster, kUser };
std::string_view name_of(Actor actor);

struct Answer {
  int status = 200;
  kube::Json body;
  bool is_ok() const { return status < 300; }
};
// A metav1.Status.
Answer refusal(int status, std::string_view reason, std::string message);

struct Change {
  Actor actor = Actor::kCluster;
  const kube::Resource& resource;
  kube::ObjectKey key;
  Object before;  // nullptr: created
  Object after;   // nullptr: gone
};

struct WatchEvent {
  std::int64_t version = 0;
  std::string_view type;  // "ADDED", "MODIFIED" or "DELETED"
  Object object;          // of a deletion: the last state, with the version of its end
  std::shared_ptr<const std::string> line;
};

class ApiStore {
 public:
  using Observer = std::function<void(const Change& change)>;
  using Collection = std::map<kube::ObjectKey, Object>;

  explicit ApiStore(const Timeline& timeline);

  // nullptr for a kind that this cluster does not serve.
  const kube::Resource* find_kind(std::string_view plural) const;
  const Collection& all(std::string_view plural) const;
  Object find(std::string_view plural, const kube::ObjectKey& key) const;
  bool exists(const std::string& uid) const { return keys_by_uid_.count(uid) > 0; }

  Answer create(Actor actor, const kube::Resource& resource, kube::Json object);
  Answer merge(Actor actor, const kube::Resource& resource, const kube::ObjectKey& key,
               const kube::Json& patch, std::string_view subresource);
  Answer apply(Actor actor, const kube::Resource& resource, const kube::ObjectKey& key,
               kube::Json desired, bool force);
  // `options` is a DeleteOptions.
  Answer remove(Actor actor, const kube::Resource& resource, const kube::ObjectKey& key,
                const kube::Json& options);
  // What the cluster's own parts do: the whole object, no questions asked. One that is being
  // deleted goes with its last finalizer.
  void replace(std::string_view plural, kube::Json object);
  void erase(Actor actor, std::string_view plural, const kube::ObjectKey& key);

  // Called after every change, in the order of subscription.
  void subscribe(Observer observer) { observers_.push_back(std::move(observer)); }
  std::int64_t version() const { return version_; }
  // Every change of a collection since the last compact().
  const std::vector<WatchEvent>& history(std::string_view plural) const;
  // Drops the history: watches from before this moment get 410.
  void compact(std::string_view plural);
  std::int64_t floor(std::string_view plural) const;

 private:
  struct Shelf {
    kube::Resource resource;
    Collection objects;
    std::vector<WatchEvent> history;
    std::int64_t floor = 0;
  };
  Shelf& shelf(std::string_view plural);
  const Shelf& shelf(std::string_view plural) const;
  Answer commit(Actor actor, Shelf& shelf, const Object& before, kube::Json after);
  void publish(Actor actor, Shelf& shelf, const Object& before, Object after, Object state);
  void stamp_new(const kube::Resource& resource, kube::Json& object);
  bool is_removable(const kube::Json& object) const;

  const Timeline& timeline_;
  std::map<std::string, Shelf, std::less<>> shelves_;
  std::map<std::string, kube::ObjectKey> keys_by_uid_;
  std::map<std::string, kube::Json> applied_;  // by uid: what our manager applied last
  std::vector<Observer> observers_;
  std::int64_t version_ = 100;
  std::int64_t made_ = 0;
};

}  // namespace trainer::simulation
