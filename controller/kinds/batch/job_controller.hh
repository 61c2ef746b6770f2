// observe -> plan -> run for one Job, in local mode. Every rule is in runtimes/batch.
#pragma once

#include <memory>

#include "controller/kinds/common/collections.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/planned_controller.hh"
#include "runtimes/batch/plan.hh"

namespace trainer::batch {

struct JobMemory : kube::ObjectMemory {
  Backoff backoff;
};

// Keys are those of Jobs, also of Jobs that are gone and have left pods.
class JobController final : public kube::PlannedController<BatchJob, JobMemory, BatchJobPlan> {
 public:
  using Pod = std::shared_ptr<const BatchPodView>;

  explicit JobController(const kube::ControllerContext& context);

  void enqueue_all() override;
  void on_pod(const Pod& before, const Pod& after);

 private:
  kube::Task<BatchJobPlan> plan(const Subject& subject) override;
  // Also where the plan fails: the same pods do not count twice.
  kube::Result<void> complete(const Subject& subject, BatchJobPlan& plan) override;
  // Releases the pods that a Job has left.
  kube::Task<kube::Result<kube::Requeue>> reconcile_gone(kube::ObjectKey key) override;

  Observed observe(const kube::ObjectKey& key) const;

  const BatchPodCache& pods_;
};

}  // namespace trainer::batch
