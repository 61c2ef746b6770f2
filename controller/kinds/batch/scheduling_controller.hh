// Binds pods to the one Node of local mode. The rules are in runtimes/batch/scheduling.
#pragma once

#include <memory>

#include "controller/kinds/common/collections.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/plan_runner.hh"
#include "runtimes/batch/scheduling.hh"

namespace trainer::batch {

// One reconcile considers all pods that wait, so there is one key.
class SchedulingController final : public kube::Controller {
 public:
  using Pod = std::shared_ptr<const BatchPodView>;
  using Job = std::shared_ptr<const JobView>;
  using Node = std::shared_ptr<const kube::StoredObject>;

  explicit SchedulingController(const kube::ControllerContext& context);

  kube::Task<kube::Result<kube::Requeue>> reconcile(kube::ObjectKey key) override;
  void enqueue_all() override;

  void on_pod(const Pod& before, const Pod& after);
  void on_job(const Job& before, const Job& after);
  void on_node(const Node& before, const Node& after);

 private:
  SchedulerInput observe() const;

  const kube::ControllerContext context_;
  const BatchPodCache& pods_;
  const JobCache& jobs_;
  const StoredCache& nodes_;
};

}  // namespace trainer::batch
