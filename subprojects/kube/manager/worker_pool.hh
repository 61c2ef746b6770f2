// The workers of one controller: they take keys from its queue, a bounded number at a time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kube/client/task_group.hh"
#include "kube/client/work_queue.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/log.hh"
#include "kube/manager/manager_metrics.hh"

namespace kube {

using Reconcile = std::function<Task<Result<Requeue>>(ObjectKey key)>;

// The workers of one controller share this pool, which outlives them.
struct WorkerPool {
  std::string name;  // the controller's, for logs and metrics
  WorkQueue& queue;
  Reconcile reconcile;
  ManagerMetrics& metrics;
  const Log& log;
  // Each entry says what a worker reconciles now, and since when.
  struct Work {
    ObjectKey key;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<std::optional<Work>> work{};
};

// Spawns `count` workers into a group. Guarantees: an error or an exception ends one reconcile,
// never the worker; the key is requeued with backoff, up to a minute if the API server is in
// trouble or a right is missing. The workers end when the queue is closed.
void start_workers(TaskGroup& group, WorkerPool& pool, int count);

}  // namespace kube
