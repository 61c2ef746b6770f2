// A manager of production's kinds whose watches and workers are not started: tests put objects into
// its caches, see what is enqueued, and reconcile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/kinds/common/collections.hh"
#include "controller/kinds/registry.hh"
#include "controller/process/metrics.hh"
#include "kube/manager/manager.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"

namespace trainer::test {

inline KindOptions own_jobsets() {
  KindOptions options;
  options.configuration.jobsetController.mode = JobSetControllerMode::kOwn;
  return options;
}

struct IdleManager : kube::test::ScriptedPeer {
  // A controller, and its context.
  struct Made {
    kube::Controller* controller = nullptr;
    std::optional<kube::ControllerContext> context;
  };
  std::map<std::string, Made, std::less<>> made;
  std::vector<std::string> enqueued;  // "jobset n/j now", "... soon", "... for counters"
  Metrics metrics;
  kube::Manager manager;

  explicit IdleManager(const KindOptions& options = own_jobsets())
      : IdleManager(production_registry(options)) {}
  explicit IdleManager(const Registry& registry)
      : manager(io, client, recorded(registry), manager_options(), metrics, log) {}

  template <class T>
  kube::ObjectCache<T>& cache(const kube::Collection& collection) {
    for (const auto& entry : manager.caches().entries()) {
      if (entry->collection == collection)
        return dynamic_cast<kube::ObjectCache<T>&>(*entry->cache);
    }
    throw std::logic_error("not watched: " + collection.resource.plural);
  }
  StoredCache& trainjobs() { return cache<kube::StoredObject>(all_of(kTrainJobs)); }
  StoredCache& jobsets() { return cache<kube::StoredObject>(all_of(kJobSets)); }
  JobCache& jobs() { return cache<JobCache::Item>(jobset_jobs()); }
  PodCache& pods() { return cache<PodCache::Item>(jobset_pods()); }

  const kube::ControllerContext& context(std::string_view controller) {
    return *made.find(controller)->second.context;
  }
  kube::Result<kube::Requeue> reconcile(std::string_view controller, kube::ObjectKey key) {
    return kube::run_task(io, made.find(controller)->second.controller->reconcile(std::move(key)));
  }

 private:
  std::vector<kube::ControllerRegistration> recorded(const Registry& registry) {
    std::vector<kube::ControllerRegistration> all;
    for (const KindRegistration& kind : registry) {
      kube::ControllerRegistration each = kind.controller;
      each.make = [this, name = each.name,
                   make = each.make](const kube::ControllerContext& context) {
        auto controller = make(context);
        made[name].controller = controller.get();
        made[name].context.emplace(context);
        return controller;
      };
      all.push_back(std::move(each));
    }
    return all;
  }
  kube::ManagerOptions manager_options() {
    kube::ManagerOptions options;
    options.component = "trainer";
    options.on_enqueue = [this](std::string_view controller, const kube::ObjectKey& key,
                                kube::Debounce debounce) {
      enqueued.push_back(std::string(controller) + " " + key.to_string() +
                         (debounce == kube::Debounce::kNone    ? " now"
                          : debounce == kube::Debounce::kShort ? " soon"
                                                               : " for counters"));
    };
    return options;
  }
};

}  // namespace trainer::test
