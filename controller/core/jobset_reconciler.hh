// observe -> plan -> act for one JobSet. Every rule is in runtimes/jobset.
#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "api/jobset.hh"
#include "controller/core/jobset_ownership.hh"
#include "controller/core/plan_runner.hh"
#include "controller/core/stores.hh"
#include "runtimes/jobset/plan.hh"

namespace trainer {

// Concurrency: the control loops' thread; never two calls for one key at a time (the queue sees to
// it).
class JobSetReconciler {
 public:
  JobSetReconciler(Stores& stores, kube::ApiClient& client, PlanRunner& plan_runner,
                   const JobSetOwnership& ownership, jobset::Gates gates, kube::Clock& clock)
      : stores_(stores),
        client_(client),
        plan_runner_(plan_runner),
        ownership_(ownership),
        gates_(gates),
        clock_(clock) {}

  kube::Task<kube::Result<Requeue>> reconcile(kube::ObjectKey key);
  void forget(const std::string& uid);

 private:
  // True while the object of this uid is there.
  bool exists(const kube::ObjectKey& key, const std::string& uid) const;
  kube::Plan plan_for(const StoredObject& stored, const JobSet& jobset) const;
  // Claims are not watched: where nothing is known of them, those that may exist are asked for by
  // name. One that is being deleted does not count, since no pod can mount it.
  kube::Task<kube::Result<void>> learn_claims(const JobSet& jobset);
  void forget_doubtful_claims(const std::string& uid);
  // Of the Jobs that a JobSet of this uid has now.
  std::int64_t failed_pods(const std::string& uid) const;

  Stores& stores_;
  kube::ApiClient& client_;
  PlanRunner& plan_runner_;
  const JobSetOwnership& ownership_;
  jobset::Gates gates_;
  kube::Clock& clock_;
  // Claims that were found or made, and how many pods had failed by then.
  struct Claims {
    std::set<std::string> names;
    std::int64_t failed_pods = 0;
  };
  std::unordered_map<std::string, Claims> claims_;  // by JobSet uid
};

}  // namespace trainer
