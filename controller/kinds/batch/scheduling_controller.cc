#include "controller/kinds/batch/scheduling_controller.hh"

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "kube/model/resources.hh"

namespace trainer::batch {
namespace {

using kube::Requeue;
using kube::Result;
using kube::Task;

// schedule() reads these parts of a pod or Job; they may change.
auto seen_of(const BatchPodView& pod) {
  return std::tuple(pod.is_over(), pod.is_deleting, pod.is_gated, pod.node_name.empty(),
                    std::string_view(pod.uid));
}

auto seen_of(const JobView& job) {
  return std::tuple(job.finished.has_value(), job.failure_target.has_value(), job.is_suspended,
                    job.is_deleting, job.parallelism, job.completions, job.succeeded > 0,
                    job.failed > 0);
}

template <class View>
bool is_same(const std::shared_ptr<const View>& before, const std::shared_ptr<const View>& after) {
  return before && after && seen_of(*before) == seen_of(*after);
}

}  // namespace

SchedulingController::SchedulingController(const kube::ControllerContext& context)
    : context_(context),
      pods_(context.caches.get<BatchPodView>(batch_pods())),
      jobs_(context.caches.get<JobView>(jobset_jobs())),
      nodes_(context.caches.get<kube::StoredObject>(all_of(kube::kNodes))) {}

void SchedulingController::enqueue_all() {
  context_.router.enqueue(context_.id, {"", "pods"}, kube::Debounce::kNone);
}

void SchedulingController::on_pod(const Pod& before, const Pod& after) {
  if (!is_same(before, after)) enqueue_all();
}

void SchedulingController::on_job(const Job& before, const Job& after) {
  if (!is_same(before, after)) enqueue_all();
}

void SchedulingController::on_node(const Node&, const Node&) {
  enqueue_all();
}

SchedulerInput SchedulingController::observe() const {
  SchedulerInput observed;
  pods_.each(
      [&observed](const kube::ObjectKey&, const Pod& pod) { observed.pods.push_back(pod.get()); });
  jobs_.each(
      [&observed](const kube::ObjectKey&, const Job& job) { observed.jobs.push_back(job.get()); });
  nodes_.each([&observed](const kube::ObjectKey&, const Node& node) {
    observed.node = view_node(*node->object());
  });
  observed.now = context_.client.clock().now().whole_seconds();
  return observed;
}

Task<Result<Requeue>> SchedulingController::reconcile(kube::ObjectKey) {
  // All plans are made before the first one runs, since the caches change while they run.
  std::vector<std::pair<kube::ObjectRef, kube::Plan>> plans;
  for (PodPlan& each : schedule(observe())) {
    kube::ObjectRef pod{each.pod->key(), each.pod->uid, each.pod->resource_version};
    plans.emplace_back(std::move(pod), std::move(each.plan));
  }
  // If one fails, it is planned again; the others go on.
  std::optional<kube::Error> error;
  for (auto& [pod, plan] : plans) {
    const auto done = co_await context_.plan_runner.run(std::move(pod), std::move(plan));
    if (!done && !error) error = done.error();
  }
  if (error) co_return tl::unexpected(std::move(*error));
  co_return Requeue{};
}

}  // namespace trainer::batch
