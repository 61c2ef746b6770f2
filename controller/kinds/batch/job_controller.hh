// A reconcile of one Job in local mode is observe -> plan -> run. Every rule is in runtimes/batch.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "controller/kinds/common/collections.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/decoded_objects.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/plan_runner.hh"
#include "runtimes/batch/plan.hh"

namespace trainer::batch {

// Keys are those of Jobs, including Jobs that are gone and have left pods.
class JobController final : public kube::Controller {
 public:
  using Pod = std::shared_ptr<const PodView>;

  explicit JobController(const kube::ControllerContext& context);

  kube::Task<kube::Result<kube::Requeue>> reconcile(kube::ObjectKey key) override;
  void forget(const std::string& uid) override { backoffs_.erase(uid); }
  void enqueue_all() override;

  void on_pod(const Pod& before, const Pod& after);

 private:
  Observed observe(const kube::ObjectKey& key, const Job* job) const;
  kube::Task<kube::Result<kube::Requeue>> release_pods(kube::ObjectKey key);

  const kube::ControllerContext context_;
  const StoredCache& jobs_;
  const BatchPodCache& pods_;
  std::unordered_map<std::string, Backoff> backoffs_;  // by uid
  kube::DecodedObjects<Job> decoded_{read_job};
};

}  // namespace trainer::batch
