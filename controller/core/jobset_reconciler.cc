#include "controller/core/jobset_reconciler.hh"

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/client/yield.hh"
#include "kube/model/resources.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/unreadable.hh"

namespace trainer {
namespace {

using kube::Result;
using kube::Task;

// Whether pods follow from it that were not there before.
bool starts_pods(const kube::Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const kube::Action& action) {
    return action.resource == kube::kJobs && action.verb != kube::Action::Verb::kDelete;
  });
}

std::vector<std::string> claims_made_by(const kube::Plan& plan) {
  std::vector<std::string> names;
  for (const auto& action : plan.actions) {
    if (action.resource == kube::kPersistentVolumeClaims &&
        action.verb == kube::Action::Verb::kCreate)
      names.push_back(action.key.name);
  }
  return names;
}

}  // namespace

Task<Result<Requeue>> JobSetReconciler::reconcile(kube::ObjectKey key) {
  const auto stored = stores_.jobsets.find(key);
  if (!stored) co_return Requeue{};
  const auto decoded = stores_.decoded_jobsets.of(stored);
  const auto& jobset = decoded->jobset;
  if (stored->body.size() >= kube::kLargeText) co_await kube::yield();
  if (!jobset) {
    // The schema keeps such objects out; one that slipped through must not be retried for ever.
    kube::Plan told;
    told.events.push_back(unreadable_event(jobset.error()));
    ObjectRef unreadable{kJobSets, key, stored->uid, stored->resource_version};
    co_return co_await plan_runner_.run(std::move(unreadable), std::move(told));
  }
  if (!ownership_.owns(jobset->spec.managedBy)) co_return Requeue{};
  const std::string& uid = stored->uid;
  forget_doubtful_claims(uid);
  const bool were_claims_known = claims_.count(uid) > 0;
  if (auto learnt = co_await learn_claims(*jobset); !learnt) {
    co_return tl::unexpected(learnt.error());
  }
  kube::Plan plan = plan_for(*stored, *jobset);
  if (were_claims_known && starts_pods(plan)) {
    claims_.erase(uid);  // somebody may have deleted what the pods are about to mount
    if (auto learnt = co_await learn_claims(*jobset); !learnt) {
      co_return tl::unexpected(learnt.error());
    }
    plan = plan_for(*stored, *jobset);
  }
  // Deleted while we asked: a claim made now might have no owner to go with.
  if (!exists(key, uid)) co_return Requeue{};

  const std::vector<std::string> made = claims_made_by(plan);
  ObjectRef object{kJobSets, key, uid, stored->resource_version};
  auto done = co_await plan_runner_.run(std::move(object), std::move(plan));
  if (!done) {
    claims_.erase(uid);
  } else if (!made.empty() && exists(key, uid)) {
    claims_[uid].names.insert(made.begin(), made.end());
  }
  co_return done;
}

kube::Plan JobSetReconciler::plan_for(const StoredObject& stored, const JobSet& jobset) const {
  jobset::Observed observed{jobset};
  observed.jobs = stores_.jobs_of(stored.uid);
  observed.removed_jobs = stores_.removed_jobs_of(stored.uid);
  if (jobset::needs_pods(jobset, gates_)) observed.pods = stores_.pods_of(stored.object_key);
  if (const auto service = jobset::headless_service_key(jobset)) {
    const auto existing = stores_.services.find(*service);
    observed.service_exists =
        existing && (existing->controller_uid.empty() || existing->controller_uid == stored.uid);
  }
  if (const auto known = claims_.find(stored.uid); known != claims_.end()) {
    observed.claims = known->second.names;
  }
  observed.now = clock_.now();
  observed.gates = gates_;
  if (stored.controller_kind == "TrainJob") observed.decorators = production_job_decorators();
  observed.is_managed_here = true;  // nothing is planned for any other
  return jobset::plan(observed);
}

bool JobSetReconciler::exists(const kube::ObjectKey& key, const std::string& uid) const {
  const auto now = stores_.jobsets.find(key);
  return now && now->uid == uid;
}

std::int64_t JobSetReconciler::failed_pods(const std::string& uid) const {
  std::int64_t failed = 0;
  for (const auto* job : stores_.jobs_of(uid)) failed += job->failed;
  return failed;
}

// The Job controller puts another pod in the place of one that failed, without a write of ours. A
// claim that was being deleted went with the pod that used it.
void JobSetReconciler::forget_doubtful_claims(const std::string& uid) {
  const auto known = claims_.find(uid);
  if (known != claims_.end() && failed_pods(uid) > known->second.failed_pods) claims_.erase(known);
}

Task<Result<void>> JobSetReconciler::learn_claims(const JobSet& jobset) {
  const auto& uid = jobset.metadata.uid;
  const bool is_new = jobset.status.replicatedJobsStatus.empty();
  if (jobset.spec.volumeClaimPolicies.empty() || is_new || claims_.count(uid)) {
    co_return Result<void>{};
  }
  std::set<std::string> known;
  for (const auto& policy : jobset.spec.volumeClaimPolicies) {
    for (const auto& claim : policy.templates) {
      const kube::ObjectKey key{jobset.metadata.ns,
                                kube::ObjectMeta::of(claim).name + "-" + jobset.metadata.name};
      const auto existing = co_await client_.get(kube::kPersistentVolumeClaims, key);
      if (!existing && existing.error().code != kube::ErrorCode::kNotFound) {
        co_return tl::unexpected(existing.error());
      }
      if (existing && !kube::ObjectMeta::of(*existing).deletion_timestamp) known.insert(key.name);
    }
  }
  // It may have been deleted, and forgotten, while we asked.
  if (exists(jobset.metadata.key(), uid)) claims_[uid] = {std::move(known), failed_pods(uid)};
  co_return Result<void>{};
}

void JobSetReconciler::forget(const std::string& uid) {
  claims_.erase(uid);
  plan_runner_.forget(uid);
}

}  // namespace trainer
