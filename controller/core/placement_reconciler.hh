// Exclusive placement, after the fact: the followers of a leader that moved. The rules are in
// runtimes/jobset/exclusive.
#pragma once

#include <string>
#include <vector>

#include "controller/core/executor.hh"
#include "controller/core/jobset_ownership.hh"
#include "controller/core/log.hh"
#include "controller/core/plan_runner.hh"
#include "controller/core/stores.hh"

namespace trainer {

// Keys are those of leaders, which the stores tell apart; whatever is decided upon is read live.
// Without our pod webhooks it deletes nothing: followers that nobody placed would be taken for
// misplaced, for ever. Concurrency: the control loops' thread.
class PlacementReconciler {
 public:
  PlacementReconciler(const Stores& stores, kube::ApiClient& client, Executor& executor,
                      const JobSetOwnership& ownership, const Log& log)
      : stores_(stores), client_(client), executor_(executor), ownership_(ownership), log_(log) {}

  kube::Task<kube::Result<Requeue>> reconcile(kube::ObjectKey key);

 private:
  kube::Task<kube::Result<bool>> is_installed();
  // The pods of the leader's Job, itself among them.
  kube::Task<kube::Result<std::vector<kube::Json>>> pods_of_job(const PodView& leader);

  const Stores& stores_;
  kube::ApiClient& client_;
  Executor& executor_;
  const JobSetOwnership& ownership_;
  const Log& log_;
};

}  // namespace trainer
