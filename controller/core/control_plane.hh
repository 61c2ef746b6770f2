// The control loops and what they stand on, wired together. The composition root's inner half:
// run.cc adds servers, signals and the configuration.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/config/configuration.hh"
#include "controller/core/executor.hh"
#include "controller/core/jobset_ownership.hh"
#include "controller/core/jobset_reconciler.hh"
#include "controller/core/legacy_finalizers.hh"
#include "controller/core/log.hh"
#include "controller/core/metrics.hh"
#include "controller/core/placement_reconciler.hh"
#include "controller/core/stores.hh"
#include "controller/core/trainjob_reconciler.hh"
#include "controller/core/worker.hh"
#include "kube/client/api_client.hh"
#include "kube/client/events.hh"
#include "kube/client/task_group.hh"
#include "kube/client/work_queue.hh"

namespace trainer {

// Concurrency: the thread of its io_context. Lifecycle: start_watching(), then start_loops() once
// this process leads, then drain(); destroyed after the io_context has stopped.
class ControlPlane {
 public:
  // At most. The transport must let through more, or reads would stand behind writes.
  static constexpr std::size_t kWritesInFlight = 24;

  ControlPlane(kube::asio::io_context& io, kube::ApiClient& client,
               const Configuration& configuration, PipelineOptions options, Metrics& metrics,
               const Log& log);
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  // Every kind's watch. Every replica has them: admission reads the stores too.
  void start_watching();
  // All stores have been listed and the expander's mode is known.
  bool is_ready() const;
  // Workers, once ready. Only the leader calls this.
  kube::Task<void> start_loops();
  bool is_leading() const { return is_leading_; }
  // No new work, the reconciles under way end, the events are sent; everything else is cancelled
  // after `limit`.
  kube::Task<void> drain(kube::Milliseconds limit);

  Stores& stores() { return stores_; }
  // Called after the stores' runtimes or JobSets changed, at most once per pass of the io_context.
  void on_stores_changed(std::function<void()> told) { stores_changed_ = std::move(told); }
  // Told the expander's mode whenever it is learnt anew; once at the start in the fixed modes.
  void on_mode(std::function<void(JobSetControllerMode mode)> told) {
    mode_changed_ = std::move(told);
    mode_changed_(ownership_.mode());
  }
  void set_pipeline_options(PipelineOptions options) { trainjobs_.set_options(std::move(options)); }
  const JobSetOwnership& ownership() const { return ownership_; }

 private:
  Stores::Listeners listeners();
  void look_again(kube::WorkQueue& queue, const kube::Resource& resource,
                  const kube::ObjectCache<StoredObject>& store, const kube::ObjectKey& key,
                  Stores::Debounce debounce);
  void watch(const kube::Resource& resource, kube::WatchSink& sink,
             const std::string& label_selector);
  void upstream_changed(bool is_present);
  void collect();

  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  const Configuration& configuration_;
  Metrics& metrics_;
  const Log& log_;
  std::function<void()> stores_changed_;
  bool is_told_ = false;
  std::function<void(JobSetControllerMode mode)> mode_changed_;
  JobSetOwnership ownership_;
  bool is_mode_known_ = false;
  bool is_leading_ = false;
  kube::WorkQueue trainjob_queue_;
  kube::WorkQueue jobset_queue_;
  kube::WorkQueue placement_queue_;
  Stores stores_;
  kube::EventRecorder events_;
  Executor executor_;
  PlanRunner plan_runner_;
  TrainJobReconciler trainjobs_;
  JobSetReconciler jobsets_;
  PlacementReconciler placement_;
  LegacyFinalizers legacy_finalizers_;
  WorkerPool trainjob_loop_;
  WorkerPool jobset_loop_;
  WorkerPool placement_loop_;
  kube::TaskGroup watches_;
  kube::TaskGroup workers_;
};

}  // namespace trainer
