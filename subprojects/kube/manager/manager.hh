// Runs controllers: their watches, queues and workers. Controller-runtime calls it a manager, too.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client/api_client.hh"
#include "kube/client/events.hh"
#include "kube/client/semaphore.hh"
#include "kube/client/task_group.hh"
#include "kube/manager/cache_set.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/executor.hh"
#include "kube/manager/log.hh"
#include "kube/manager/manager_metrics.hh"
#include "kube/model/json.hh"

namespace kube {

struct ManagerOptions {
  std::string component;  // source of events, and field manager of server-side applies
  std::string ns;         // the namespace whose objects are watched; empty: all
  // This function says how many objects of "Kind.group" are reconciled at a time. If it is null,
  // the registrations say it.
  std::function<int(std::string_view group_kind, int otherwise)> concurrency;
  // It is called when a watch, a worker or a task of a controller has ended by an exception. That
  // is not started again: caches may be stale, or objects not reconciled. May be null.
  std::function<void()> on_task_lost;
  // It is called for every key that an event enqueues; may be null.
  std::function<void(std::string_view controller, const ObjectKey& key, Debounce debounce)>
      on_enqueue;
};

// Concurrency: the thread of its io_context. Lifecycle: start_watching(), then start_workers() once
// this process leads, then drain(); destroyed after the io_context has stopped.
class Manager {
 public:
  Manager(asio::io_context& io, ApiClient& client,
          std::vector<ControllerRegistration> registrations, ManagerOptions options,
          ManagerMetrics& metrics, const Log& log);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Starts every registered watch. Every replica has them: admission reads the caches too.
  void start_watching();
  // Returns whether all caches are synced and every controller is ready.
  bool is_ready() const;
  // Returns the caches that are not synced, "jobsets.jobset.x-k8s.io (not served ...)"; "" if the
  // cause is not a cache.
  std::string missing() const;
  // Enqueues all objects and starts the workers when is_ready(). Before that, nothing is enqueued,
  // so that the queues of a standby do not grow. Only the leader calls this.
  Task<void> start_workers();
  bool is_leading() const { return is_leading_; }
  // Starts no new reconciles, waits for running ones and sends the events. Cancels those that still
  // run after `limit`.
  Task<void> drain(Milliseconds limit);

  const CacheSet& caches() const { return caches_; }
  // Calls `handler` for every change of a collection that a controller watches as T, after that
  // controller's own handler.
  template <class T>
  void on_change(const Collection& collection, typename ObjectCache<T>::EventHandler handler) {
    for (const auto& entry : caches_.entries()) {
      if (entry->collection == collection)
        dynamic_cast<ObjectCache<T>&>(*entry->cache).add_event_handler(handler);
    }
  }
  // Reads queues, workers, caches and watches into the metrics.
  void collect();
  // Returns the same as JSON, for /debug/state, with the keys that are being reconciled or wait: at
  // most kMaxShownKeys of each queue.
  Json state() const;
  static constexpr std::size_t kMaxShownKeys = 100;

 private:
  struct Running;
  Running& add(ControllerRegistration registration);
  void connect_primary(Running& running);
  void watch(CacheSet::Entry& entry, Milliseconds batch);
  void enqueue(Running& running, const ObjectKey& key, Debounce debounce);

  TaskGroup::OnError on_task_error() const;

  asio::io_context& io_;
  ApiClient& client_;
  ManagerOptions options_;
  ManagerMetrics& metrics_;
  const Log& log_;
  bool is_leading_ = false;
  CacheSet caches_;
  EventRouter router_;
  Semaphore writes_;
  EventRecorder events_;
  Executor executor_;
  std::vector<std::unique_ptr<Running>> running_;
  TaskGroup watches_;
  TaskGroup workers_;
};

}  // namespace kube
