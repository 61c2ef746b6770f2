// The manager runs a controller through this interface, and makes it from a registration.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/client/api_client.hh"
#include "kube/client/task.hh"
#include "kube/manager/cache_set.hh"
#include "kube/manager/pacing.hh"

namespace kube {

class EventRouter;
class Executor;
class Log;
class ManagerMetrics;
class PlanRunner;

// The result of a reconcile says when to reconcile again without an event, if at all.
using Requeue = std::optional<std::chrono::milliseconds>;

// A controller uses this context, which outlives it. Only watches and the executor write the
// caches.
struct ControllerContext {
  asio::io_context& io;
  ApiClient& client;
  const CacheSet& caches;
  EventRouter& router;
  std::size_t id;  // the id of this controller in the router
  PlanRunner& plan_runner;
  Executor& executor;
  const Log& log;
  ManagerMetrics& metrics;
};

// A task that runs besides the workers until it is cancelled.
struct BackgroundTask {
  std::string name;
  Task<void> task;
};

// Concurrency: the control loops' thread; never two reconciles of one key at a time.
class Controller {
 public:
  virtual ~Controller() = default;
  virtual Task<Result<Requeue>> reconcile(ObjectKey key) = 0;
  // An object of the primary collection was deleted, or replaced by one with another uid.
  virtual void forget(const std::string& /*uid*/) {}
  // Returns false while something besides the caches must be known before the first reconcile.
  virtual bool is_ready() const { return true; }
  // These tasks run on every replica, from the start of its watches.
  virtual std::vector<BackgroundTask> tasks() { return {}; }
  // This replica starts to lead, and nothing was enqueued before. If the primary collection is not
  // kept as StoredObjects, this enqueues the objects that are to be reconciled.
  virtual void enqueue_all() {}
  // These tasks run on the leader, besides its workers.
  virtual std::vector<BackgroundTask> leader_tasks() { return {}; }
};

// This is one collection that a controller watches.
struct Watch {
  Collection collection;
  Milliseconds batch{0};  // events within this time are processed together
  CacheSet::MakeCache make_cache;
  // Adds indexes and the controller's event handler to the cache; may be null.
  std::function<void(AnyObjectCache& cache, Controller& controller)> connect;
  // If this is false, the process is ready, and runs, while the cluster does not serve the kind.
  bool is_required = true;

  // The handler maps an event to keys and a debounce; it may be null if the controller only reads
  // the cache.
  template <class Class, class T>
  static Watch of(Collection collection, typename ObjectCache<T>::Transform transform,
                  void (Class::*handler)(const std::shared_ptr<const T>& before,
                                         const std::shared_ptr<const T>& after)) {
    Watch watch = only_read<T>(std::move(collection), std::move(transform));
    watch.connect = [handler](AnyObjectCache& cache, Controller& controller) {
      dynamic_cast<ObjectCache<T>&>(cache).add_event_handler(
          [handler, &to = static_cast<Class&>(controller)](const auto& before, const auto& after) {
            (to.*handler)(before, after);
          });
    };
    return watch;
  }
  template <class T>
  static Watch only_read(Collection collection, typename ObjectCache<T>::Transform transform) {
    Watch watch;
    watch.collection = std::move(collection);
    watch.make_cache = [transform = std::move(transform)] {
      return std::make_unique<ObjectCache<T>>(transform);
    };
    return watch;
  }
};

// This is the event of an action that failed without a reason of its own.
struct DefaultFailure {
  std::string reason;  // "": such a failure is only logged
  std::string prefix;  // the first part of the message
};

// This is a rule of a ClusterRole.
struct PolicyRule {
  std::string comment;  // the reason for the right
  std::vector<std::string> groups;
  std::vector<std::string> resources;
  std::vector<std::string> names;  // resourceNames; empty: all
  std::vector<std::string> verbs;
  // An installation with this option needs the rule, in a ClusterRole of its own of this name; ""
  // says that every installation needs it.
  std::string option;
};

// Everything that the manager needs to run a controller.
struct ControllerRegistration {
  std::string name;        // in logs and metrics
  std::string component;   // source of its events; "": the manager's
  std::string group_kind;  // "Kind.group", its key in `groupKindConcurrency`; "": fixed workers
  int workers = 1;         // reconciles at a time, unless configured
  // The first watch has the collection whose objects are reconciled. If it is kept as
  // StoredObjects, the manager enqueues its changed objects, keeps their uids in the owner index
  // and calls forget(). A primary of another type has a handler for that, and enqueue_all().
  std::vector<Watch> watches;
  DebounceTimes debounce{};
  DefaultFailure default_failure;
  std::vector<PolicyRule> rules;
  std::function<std::unique_ptr<Controller>(const ControllerContext& context)> make;

  const Resource& resource() const { return watches.front().collection.resource; }
};

}  // namespace kube
