// Repairs exclusive placement after a leader pod has moved to another domain. The rules are in
// runtimes/jobset/exclusive.
#pragma once

#include <memory>
#include <vector>

#include "controller/kinds/common/collections.hh"
#include "controller/kinds/jobset/jobset_state.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/executor.hh"

namespace trainer {

// Keys are those of leader pods; pods and nodes are read from the API server. Without the pod
// webhooks it deletes nothing: followers would have no node selector, and would always count as
// misplaced.
class PlacementController final : public kube::Controller {
 public:
  using Pod = std::shared_ptr<const PodView>;

  PlacementController(const kube::ControllerContext& context, std::shared_ptr<JobSetState> shared);

  kube::Task<kube::Result<kube::Requeue>> reconcile(kube::ObjectKey key) override;
  void enqueue_all() override;

  // Enqueues a leader under exclusive placement that got a node or has changed.
  void on_pod(const Pod& before, const Pod& after);

 private:
  kube::Task<kube::Result<bool>> is_installed();
  // The pods of the leader's Job, the leader included.
  kube::Task<kube::Result<std::vector<kube::Json>>> pods_of_job(const PodView& leader);

  const kube::ControllerContext context_;
  const std::shared_ptr<JobSetState> shared_;
  const PodCache& pods_;
};

}  // namespace trainer
