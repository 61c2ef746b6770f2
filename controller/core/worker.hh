// A control loop: keys from a queue, a bounded number at a time.
#pragma once

#include <functional>
#include <string>

#include "controller/core/log.hh"
#include "controller/core/metrics.hh"
#include "controller/core/plan_runner.hh"
#include "kube/client/task_group.hh"
#include "kube/client/work_queue.hh"

namespace trainer {

using Reconcile = std::function<kube::Task<kube::Result<Requeue>>(kube::ObjectKey key)>;

// What the workers of one kind share. Outlives them.
struct WorkerPool {
  std::string name;  // as logs and metrics call it
  kube::WorkQueue& queue;
  Reconcile reconcile;
  Metrics& metrics;
  const Log& log;
};

// Guarantees: an error or an exception ends one reconcile, never the worker; the key comes back
// with backoff. Ends when the queue is closed.
kube::Task<void> run_worker(WorkerPool& loop);

// Spawns `count` workers into a group.
void start_workers(kube::TaskGroup& group, WorkerPool& loop, int count);

}  // namespace trainer
