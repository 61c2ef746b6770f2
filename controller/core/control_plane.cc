#include "controller/core/control_plane.hh"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "api/runtime.hh"
#include "controller/core/upstream_lease.hh"
#include "kube/client/with_deadline.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

using kube::Milliseconds;
using kube::Task;

// Reconciles wait for the API server nearly all the time: many may be under way on one thread, and
// the slots bound their writes.
constexpr int kTrainJobWorkers = 32;
constexpr int kJobSetWorkers = 32;
constexpr int kPlacementWorkers = 4;
// A job's Pods and Jobs change together, and nobody waits for them by the millisecond.
constexpr Milliseconds kGather{20};
// The loops' names in logs and metrics, as dashboards for upstream's controllers know them:
// trainer-contract 3.1, jobset-contract 6.1. There, too, `pod` is who keeps exclusive placement.
const char* const kTrainJobLoop = "trainjob_controller";
const char* const kJobSetLoop = "jobset";
const char* const kPodLoop = "pod";

}  // namespace

ControlPlane::ControlPlane(kube::asio::io_context& io, kube::ApiClient& client,
                           const Configuration& configuration, PipelineOptions options,
                           Metrics& metrics, const Log& log)
    : io_(io),
      client_(client),
      configuration_(configuration),
      metrics_(metrics),
      log_(log),
      ownership_(configuration.expander.mode),
      trainjob_queue_(io, client.clock()),
      jobset_queue_(io, client.clock()),
      placement_queue_(io, client.clock()),
      stores_(listeners()),
      events_(client, "trainer"),
      executor_(io, client, stores_, log, kWritesInFlight),
      plan_runner_(executor_, events_, client.clock(), log),
      trainjobs_(stores_, client, plan_runner_, ownership_,
                 jobset_gates(configuration.featureGates), std::move(options), client.clock()),
      jobsets_(stores_, client, plan_runner_, ownership_, jobset_gates(configuration.featureGates),
               client.clock()),
      placement_(stores_, client, executor_, ownership_, log),
      legacy_finalizers_(io, client, stores_, log),
      trainjob_loop_{kTrainJobLoop, trainjob_queue_,
                     [this](kube::ObjectKey key) { return trainjobs_.reconcile(std::move(key)); },
                     metrics, log},
      jobset_loop_{kJobSetLoop, jobset_queue_,
                   [this](kube::ObjectKey key) { return jobsets_.reconcile(std::move(key)); },
                   metrics, log},
      placement_loop_{kPodLoop, placement_queue_,
                      [this](kube::ObjectKey key) { return placement_.reconcile(std::move(key)); },
                      metrics, log},
      watches_(io.get_executor(),
               [&log](std::string_view task, std::string_view what) {
                 log.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
               }),
      workers_(io.get_executor(), [&log](std::string_view task, std::string_view what) {
        log.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
      }) {
  for (WorkerPool* loop : {&trainjob_loop_, &jobset_loop_, &placement_loop_}) {
    loop->queue.on_wait = [loop](auto waited) { loop->metrics.queued(loop->name, waited); };
  }
  metrics_.set_leader(configuration_.leaderElection.resourceName, false);
  metrics_.on_collect([this] { collect(); });
  plan_runner_.on_finished = [this](std::string_view kind, std::string_view result) {
    metrics_.finished(kind, result);
  };
}

Stores::Listeners ControlPlane::listeners() {
  Stores::Listeners told;
  told.trainjob = [this](const kube::ObjectKey& key, Stores::Debounce debounce) {
    look_again(trainjob_queue_, kTrainJobs, stores_.trainjobs, key, debounce);
  };
  told.jobset = [this](const kube::ObjectKey& key, Stores::Debounce debounce) {
    look_again(jobset_queue_, kJobSets, stores_.jobsets, key, debounce);
  };
  told.trainjob_gone = [this](const std::string& uid) { trainjobs_.forget(uid); };
  told.jobset_gone = [this](const StoredObject& last) {
    jobsets_.forget(last.uid);
    trainjobs_.jobset_removed(last);
  };
  told.leader = [this](const kube::ObjectKey& key) { placement_queue_.add(key); };
  told.runtimes_changed = [this] {
    if (is_told_) return;
    is_told_ = true;  // a list of a thousand objects is one change
    kube::asio::post(io_, [this] {
      is_told_ = false;
      legacy_finalizers_.wake();
      if (stores_changed_) stores_changed_();
    });
  };
  return told;
}

void ControlPlane::look_again(kube::WorkQueue& queue, const kube::Resource& resource,
                              const kube::ObjectCache<StoredObject>& store,
                              const kube::ObjectKey& key, Stores::Debounce debounce) {
  const auto object = store.find(key);
  if (!object || debounce == Stores::Debounce::kNone) return queue.add(key);
  queue.add_after(key, plan_runner_.wait_of(debounce, resource, object->uid));
}

void ControlPlane::watch(const kube::Resource& resource, kube::WatchSink& sink,
                         const std::string& label_selector) {
  kube::WatchOptions options;
  options.label_selector = label_selector;
  if (resource == kube::kJobs || resource == kube::kPods) options.gather = kGather;
  const std::string plural = resource.plural;
  options.on_note = [this, plural](std::string_view what, std::string_view detail) {
    metrics_.watched(plural, what);
    if (what == "malformed" || what == "error") {
      log_.warn(
          "watch",
          {{"resource", plural}, {"what", std::string(what)}, {"detail", std::string(detail)}});
    }
  };
  watches_.spawn("watch " + plural, kube::run_watch(client_, resource, sink, std::move(options)));
}

void ControlPlane::start_watching() {
  watch(kTrainJobs, stores_.trainjobs, "");
  watch(kTrainingRuntimes, stores_.training_runtimes, "");
  watch(kClusterTrainingRuntimes, stores_.cluster_runtimes, "");
  watch(kJobSets, stores_.jobsets, "");
  watch(kube::kServices, stores_.services, "");
  watch(kube::kJobs, stores_.jobs, std::string(jobset::kJobSetNameKey));
  watch(kube::kPods, stores_.pods, std::string(jobset::kJobSetNameKey));
  if (configuration_.expander.mode != JobSetControllerMode::kAuto) {
    is_mode_known_ = true;
    return;
  }
  watches_.spawn(
      "follow the upstream JobSet controller",
      follow_upstream_lease(
          client_, configuration_.expander.upstreamNamespaces,
          [this](bool is_held) { upstream_changed(is_held); }, [this] { is_mode_known_ = true; }));
}

void ControlPlane::upstream_changed(bool is_present) {
  const auto before = ownership_.mode();
  ownership_.set_upstream_present(is_present);
  if (mode_changed_) mode_changed_(ownership_.mode());
  if (ownership_.mode() == before) return;
  log_.info("expander mode", {{"mode", std::string(name_of(ownership_.mode()))},
                              {"why", is_present ? "the upstream JobSet controller holds its Lease"
                                                 : "no upstream JobSet controller"}});
  stores_.jobsets.each([this](const kube::ObjectKey& key, const auto&) { jobset_queue_.add(key); });
  stores_.pods.each([this](const kube::ObjectKey& key, const auto& pod) {
    if (pod->is_exclusive_leader) placement_queue_.add(key);
  });
}

bool ControlPlane::is_ready() const {
  return is_mode_known_ && stores_.are_synced();
}

Task<void> ControlPlane::start_loops() {
  kube::asio::steady_timer timer(io_);
  while (!is_ready()) {
    timer.expires_after(Milliseconds(20));
    co_await timer.async_wait(kube::asio::use_awaitable);
  }
  is_leading_ = true;
  metrics_.set_leader(configuration_.leaderElection.resourceName, true);
  workers_.spawn("events", events_.run());
  workers_.spawn("legacy finalizers", legacy_finalizers_.run());
  start_workers(workers_, trainjob_loop_,
                configuration_.concurrency_of("TrainJob.trainer.kubeflow.org", kTrainJobWorkers));
  start_workers(workers_, jobset_loop_,
                configuration_.concurrency_of("JobSet.jobset.x-k8s.io", kJobSetWorkers));
  start_workers(workers_, placement_loop_, kPlacementWorkers);
  log_.info("control loops run", {{"trainjobs", std::to_string(stores_.trainjobs.size())},
                                  {"jobsets", std::to_string(stores_.jobsets.size())},
                                  {"expander", std::string(name_of(ownership_.mode()))}});
}

Task<void> ControlPlane::drain(Milliseconds limit) {
  trainjob_queue_.close();
  jobset_queue_.close();
  placement_queue_.close();
  kube::asio::steady_timer timer(io_);
  const auto end = std::chrono::steady_clock::now() + limit;
  while (is_leading_ && std::chrono::steady_clock::now() < end &&
         !(trainjob_queue_.is_idle() && jobset_queue_.is_idle() && placement_queue_.is_idle())) {
    timer.expires_after(Milliseconds(10));
    co_await timer.async_wait(kube::asio::use_awaitable);
  }
  if (is_leading_) co_await events_.drain(Milliseconds(2'000));
  workers_.cancel();
  co_await workers_.join();
  watches_.cancel();
  co_await watches_.join();
}

void ControlPlane::collect() {
  for (const WorkerPool* loop : {&trainjob_loop_, &jobset_loop_, &placement_loop_}) {
    const kube::WorkQueue& queue = loop->queue;
    metrics_.set_queue(loop->name, {queue.depth(), queue.adds(), queue.retries()});
  }
  metrics_.set_objects("TrainJob", stores_.trainjobs.size());
  metrics_.set_objects("JobSet", stores_.jobsets.size());
  metrics_.set_objects("Job", stores_.jobs.size());
  metrics_.set_objects("Pod", stores_.pods.size());
  metrics_.set_events_pending(events_.pending(), events_.dropped());
}

}  // namespace trainer
