// Worker pods (mpi-operator, pkg/controller: getOrCreateWorker, deleteWorkerPods).
#include <algorithm>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/mpijob/context.hh"

namespace trainer::mpijob {
namespace {

// No more pods are planned at once: all are in memory together, and a template may have megabytes.
struct Batch {
  std::size_t objects = 1'000;
  std::size_t weight = 100'000;  // by kube::weight_of()
};

void remove_pod(MPIJobContext& context, const v1::V1PodView& pod) {
  if (!pod.is_deleting) context.remove(kube::kPods, pod.name, pod.uid);
}

}  // namespace

// A worker that has ended stays as it is: whether the job can do without it is the launcher's
// matter.
void sync_workers(MPIJobContext& context) {
  for (const v1::V1PodView* pod : context.surplus) remove_pod(context, *pod);
  Batch left;
  for (std::size_t i = 0; i < context.workers.size(); ++i) {
    if (context.workers[i]) continue;
    if (left.objects == 0 || left.weight == 0)
      return context.plan.requeue_within(std::chrono::milliseconds(0));
    const auto index = static_cast<std::int32_t>(i);
    kube::Json pod = make_worker(context.job, index, context.observed.settings);
    --left.objects;
    left.weight -= std::min(left.weight, kube::weight_of(pod));
    context.create(kube::kPods, worker_name(context.name(), index), std::move(pod), kWorkers);
  }
}

void remove_workers(MPIJobContext& context) {
  const std::string_view policy = *context.job.spec.runPolicy.cleanPodPolicy;
  // With `Running`, a suspended job keeps the pods that have ended, too: so it is in mpi-operator.
  for (const v1::V1PodView* pod : context.observed.workers)
    if (policy != "Running" || !pod->is_over()) remove_pod(context, *pod);
}

}  // namespace trainer::mpijob
