#include "kube/manager/manager.hh"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <utility>

#include "kube/client/work_queue.hh"
#include "kube/manager/plan_runner.hh"
#include "kube/manager/status_writer.hh"
#include "kube/manager/stored_object.hh"
#include "kube/manager/worker_pool.hh"

namespace kube {

namespace {

const char* const kInstall = "install its CustomResourceDefinition";

// Returns "jobsets.jobset.x-k8s.io", the name of the CustomResourceDefinition.
std::string name_of(const CacheSet::Entry& entry) {
  const Resource& resource = entry.collection.resource;
  return resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
}

ManagerMetrics::QueueFigures figures_of(const WorkQueue& queue, const WorkerPool& pool) {
  ManagerMetrics::QueueFigures figures{queue.depth(), queue.adds(), queue.retries(),
                                       pool.work.size()};
  const auto now = std::chrono::steady_clock::now();
  for (const auto& work : pool.work) {
    if (!work) continue;
    const double took = std::chrono::duration<double>(now - work->since).count();
    ++figures.active;
    figures.unfinished_seconds += took;
    figures.longest_seconds = std::max(figures.longest_seconds, took);
  }
  return figures;
}

Json json_of(std::size_t number) {
  return static_cast<std::int64_t>(number);
}

Json state_of(const WorkQueue& queue, const WorkerPool& pool) {
  const auto figures = figures_of(queue, pool);
  Json waiting = Json::array();
  for (const ObjectKey& key : queue.ready_keys(Manager::kMaxShownKeys))
    waiting.push_back(key.to_string());
  Json active = Json::array();
  const auto now = std::chrono::steady_clock::now();
  for (const auto& work : pool.work) {
    if (!work || active.size() >= Manager::kMaxShownKeys) continue;
    active.push_back(
        Json::object({{"key", work->key.to_string()},
                      {"seconds", std::chrono::duration<double>(now - work->since).count()}}));
  }
  return Json::object({{"workers", json_of(figures.workers)},
                       {"active", json_of(figures.active)},
                       {"ready", json_of(figures.depth)},
                       {"delayed", json_of(queue.delayed())},
                       {"adds", static_cast<std::int64_t>(figures.adds)},
                       {"retries", static_cast<std::int64_t>(figures.retries)},
                       {"reconciles", std::move(active)},
                       {"waits", std::move(waiting)}});
}

}  // namespace

struct Manager::Running {
  Running(Manager& manager, ControllerRegistration given)
      : registration(std::move(given)),
        queue(manager.io_, manager.client_.clock()),
        statuses(manager.client_, manager.caches_, manager.router_, manager.writes_, manager.log_),
        plan_runner(registration, manager.executor_, statuses, manager.events_,
                    manager.client_.clock(), manager.metrics_, manager.log_),
        pool{registration.name, queue,
             [this](ObjectKey key) { return controller->reconcile(std::move(key)); },
             manager.metrics_, manager.log_} {}

  const ControllerRegistration registration;
  WorkQueue queue;
  StatusWriter statuses;
  PlanRunner plan_runner;
  WorkerPool pool;
  std::unique_ptr<Controller> controller;
  const ObjectCache<StoredObject>* primary = nullptr;  // the cache that keeps it as StoredObjects
  std::size_t id = 0;
};

Manager::Manager(asio::io_context& io, ApiClient& client,
                 std::vector<ControllerRegistration> registrations, ManagerOptions options,
                 ManagerMetrics& metrics, const Log& log)
    : io_(io),
      client_(client),
      options_(std::move(options)),
      metrics_(metrics),
      log_(log),
      writes_(Pacing::kWritesInFlight, Pacing::kStatusShare),
      events_(client, options_.component),
      executor_(io, client, caches_, writes_, options_.component, log),
      watches_(io.get_executor(), on_task_error()),
      workers_(io.get_executor(), on_task_error()) {
  for (ControllerRegistration& each : registrations) {
    for (const Watch& watch : each.watches)
      caches_.add(watch.collection, watch.make_cache, watch.is_required);
    add(std::move(each));
  }
  // A controller reads the caches of other controllers' primaries, so their handlers come first.
  for (const auto& each : running_) connect_primary(*each);
  for (const auto& each : running_) {
    for (const Watch& watch : each->registration.watches) {
      if (!watch.connect) continue;
      watch.connect(caches_.add(watch.collection, watch.make_cache, false), *each->controller);
    }
  }
}

Manager::~Manager() = default;

TaskGroup::OnError Manager::on_task_error() const {
  return [this](std::string_view task, std::string_view what) {
    log_.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
    if (options_.on_task_lost) options_.on_task_lost();
  };
}

Manager::Running& Manager::add(ControllerRegistration registration) {
  running_.push_back(std::make_unique<Running>(*this, std::move(registration)));
  Running& running = *running_.back();
  running.id = router_.add_controller([this, &running](const ObjectKey& key, Debounce debounce) {
    enqueue(running, key, debounce);
  });
  running.statuses.set_controller(running.id);
  running.queue.on_wait = [this, &running](auto waited) {
    metrics_.queued(running.registration.name, waited);
  };

  const ControllerContext context{
      io_, client_, caches_, router_, running.id, running.plan_runner, executor_, log_, metrics_};
  running.controller = running.registration.make(context);
  return running;
}

void Manager::connect_primary(Running& running) {
  const Watch& watch = running.registration.watches.front();
  auto* const cache = dynamic_cast<ObjectCache<StoredObject>*>(
      &caches_.add(watch.collection, watch.make_cache, watch.is_required));
  if (!cache) return;
  running.primary = cache;
  cache->add_event_handler([this, &running](const auto& before, const auto& after) {
    if (before && (!after || after->uid != before->uid)) {
      router_.remove_owner(running.id, before->uid);
      running.plan_runner.forget(before->uid);
      running.controller->forget(before->uid);
    }
    const auto& key = (after ? after : before)->object_key;
    if (after) router_.set_owner(running.id, after->uid, key);
    const bool is_update = before && after && before->uid == after->uid;
    if (is_update && running.statuses.is_own_write(key, after->resource_version)) return;
    if (const auto debounce = router_.debounce_of_change()) enqueue(running, key, *debounce);
  });
}

void Manager::enqueue(Running& running, const ObjectKey& key, Debounce debounce) {
  if (options_.on_enqueue) options_.on_enqueue(running.registration.name, key, debounce);
  if (!is_leading_) return;  // start_workers() enqueues what exists then
  const auto object = running.primary ? running.primary->find(key) : nullptr;
  if (!object || debounce == Debounce::kNone) return running.queue.add(key);
  running.queue.add_after(key, running.plan_runner.delay_of(debounce, object->uid));
}

void Manager::watch(CacheSet::Entry& entry, Milliseconds batch) {
  WatchOptions options;
  if (entry.collection.resource.namespaced) options.ns = options_.ns;
  options.label_selector = entry.collection.label_selector;
  options.batch = batch;
  options.on_sign_of_life = [this, &entry] {
    entry.heard_at = client_.clock().steady();
    entry.is_interrupted = false;
  };
  options.on_note = [this, &entry](std::string_view what, std::string_view detail) {
    const std::string& plural = entry.collection.resource.plural;
    const bool was_served = !std::exchange(entry.is_unserved, what == "unserved");
    metrics_.watched(plural, what);
    if (what == "error" || what == "gone" || what == "unserved") entry.is_interrupted = true;
    // A process that waits for a kind says so once. The kind is listed again with backoff.
    if (entry.is_unserved && was_served && entry.is_required)
      log_.warn("kind is not served", {{"kind", name_of(entry)}, {"then", kInstall}});
    if (what == "malformed" || what == "error") {
      log_.warn(
          "watch",
          {{"resource", plural}, {"what", std::string(what)}, {"detail", std::string(detail)}});
    }
  };
  watches_.spawn("watch " + entry.collection.resource.plural,
                 run_watch(client_, entry.collection.resource, *entry.cache, std::move(options)));
}

void Manager::start_watching() {
  for (const auto& entry : caches_.entries()) {
    Milliseconds batch{0};
    for (const auto& each : running_) {
      for (const Watch& watch : each->registration.watches) {
        if (watch.collection == entry->collection) batch = std::max(batch, watch.batch);
      }
    }
    watch(*entry, batch);
  }
  for (const auto& each : running_) {
    for (BackgroundTask& task : each->controller->tasks())
      watches_.spawn(std::move(task.name), std::move(task.task));
  }
}

bool Manager::is_ready() const {
  return caches_.are_synced() &&
         std::all_of(running_.begin(), running_.end(),
                     [](const auto& each) { return each->controller->is_ready(); });
}

std::string Manager::missing() const {
  std::string all;
  for (const auto& entry : caches_.entries()) {
    if (entry->cache->is_synced() || (entry->is_unserved && !entry->is_required)) continue;
    all += (all.empty() ? "" : ", ") + name_of(*entry);
    if (entry->is_unserved) all += std::string(" (not served: ") + kInstall + ")";
  }
  return all;
}

Task<void> Manager::start_workers() {
  asio::steady_timer timer(io_);
  while (!is_ready()) {
    timer.expires_after(Milliseconds(20));
    co_await timer.async_wait(asio::use_awaitable);
  }
  is_leading_ = true;
  workers_.spawn("events", events_.run());
  for (const auto& each : running_) {
    each->controller->enqueue_all();
    if (each->primary) {
      each->primary->each([this, &running = *each](const ObjectKey& key, const auto&) {
        enqueue(running, key, Debounce::kNone);
      });
    }
    for (BackgroundTask& task : each->controller->leader_tasks())
      workers_.spawn(std::move(task.name), std::move(task.task));
    const ControllerRegistration& registration = each->registration;
    const bool is_configurable = options_.concurrency && !registration.group_kind.empty();
    const int count = is_configurable
                          ? options_.concurrency(registration.group_kind, registration.workers)
                          : registration.workers;
    kube::start_workers(workers_, each->pool, count);
    log_.info("controller runs",
              {{"controller", registration.name},
               {"workers", std::to_string(count)},
               {"objects", std::to_string(each->primary ? each->primary->size() : 0)}});
  }
}

Task<void> Manager::drain(Milliseconds limit) {
  for (const auto& each : running_) each->queue.close();
  asio::steady_timer timer(io_);
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto is_busy = [](const auto& each) { return !each->queue.is_idle(); };
  while (is_leading_ && std::chrono::steady_clock::now() < end &&
         std::ranges::any_of(running_, is_busy)) {
    timer.expires_after(Milliseconds(10));
    co_await timer.async_wait(asio::use_awaitable);
  }
  if (is_leading_) co_await events_.drain(Milliseconds(2'000));
  workers_.cancel();
  co_await workers_.join();
  watches_.cancel();
  co_await watches_.join();
}

void Manager::collect() {
  for (const auto& each : running_)
    metrics_.set_queue(each->registration.name, figures_of(each->queue, each->pool));
  // Metrics are sums over all caches of a kind, and the age of the watch that is silent longest.
  const auto now = client_.clock().steady();
  std::map<std::string, std::size_t> objects;
  std::map<std::string, Clock::Steady> heard;
  for (const auto& entry : caches_.entries()) {
    objects[entry->collection.resource.kind] += entry->cache->size();
    if (!entry->heard_at) continue;
    Clock::Steady& at = heard.try_emplace(entry->collection.resource.plural, now).first->second;
    at = std::min(at, *entry->heard_at);
  }
  for (const auto& [kind, count] : objects) metrics_.set_objects(kind, count);
  for (const auto& [resource, at] : heard) metrics_.set_watch_age(resource, now - at);
  metrics_.set_events_pending(events_.pending(), events_.dropped());
}

Json Manager::state() const {
  const auto now = client_.clock().steady();
  Json controllers = Json::object();
  for (const auto& each : running_)
    controllers.set(each->registration.name, state_of(each->queue, each->pool));
  Json caches = Json::array();
  for (const auto& entry : caches_.entries()) {
    Json cache = Json::object({{"resource", name_of(*entry)},
                               {"labelSelector", entry->collection.label_selector},
                               {"objects", json_of(entry->cache->size())},
                               {"isSynced", entry->cache->is_synced()},
                               {"isServed", !entry->is_unserved}});
    if (entry->heard_at) {
      cache.set("silentSeconds", std::chrono::duration<double>(now - *entry->heard_at).count());
    }
    caches.push_back(std::move(cache));
  }
  return Json::object({{"isLeading", is_leading_},
                       {"isReady", is_ready()},
                       {"controllers", std::move(controllers)},
                       {"caches", std::move(caches)},
                       {"writesWaiting", json_of(writes_.waiting())},
                       {"eventsPending", json_of(events_.pending())},
                       {"eventsDropped", json_of(events_.dropped())}});
}

}  // namespace kube
