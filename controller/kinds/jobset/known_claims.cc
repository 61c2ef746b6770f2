#include "controller/kinds/jobset/known_claims.hh"

#include <utility>

#include "kube/model/resources.hh"

namespace trainer {

using kube::Result;
using kube::Task;

namespace {

// The executor accepts a claim that is in the way of a create by the same rule.
bool is_usable(const kube::ObjectMeta& claim, const std::string& uid) {
  const auto* owner = claim.controller();
  return !claim.deletion_timestamp && (!owner || owner->uid == uid);
}

}  // namespace

Task<Result<void>> KnownClaims::read(const JobSet& jobset) {
  const auto& uid = jobset.metadata.uid;
  const bool is_new = jobset.status.replicatedJobsStatus.empty();
  if (jobset.spec.volumeClaimPolicies.empty() || is_new || has(uid)) co_return Result<void>{};
  std::set<std::string> names;
  for (const auto& policy : jobset.spec.volumeClaimPolicies) {
    for (const auto& claim : policy.templates) {
      const kube::ObjectKey key{jobset.metadata.ns,
                                kube::ObjectMeta::of(claim).name + "-" + jobset.metadata.name};
      const auto existing = co_await client_.get(kube::kPersistentVolumeClaims, key);
      if (!existing && existing.error().code != kube::ErrorCode::kNotFound) {
        co_return tl::unexpected(existing.error());
      }
      if (existing && is_usable(kube::ObjectMeta::of(*existing), uid)) names.insert(key.name);
    }
  }
  // The JobSet may have been deleted, and forgotten, during the reads.
  if (is_current_(jobset.metadata.key(), uid)) {
    claims_[uid] = {std::move(names), failed_pods_(jobset)};
  }
  co_return Result<void>{};
}

std::set<std::string> KnownClaims::names(const std::string& uid) const {
  const auto at = claims_.find(uid);
  return at == claims_.end() ? std::set<std::string>{} : at->second.names;
}

void KnownClaims::add(const JobSet& jobset, const std::set<std::string>& created) {
  if (created.empty() || !is_current_(jobset.metadata.key(), jobset.metadata.uid)) return;
  claims_[jobset.metadata.uid].names.insert(created.begin(), created.end());
}

void KnownClaims::forget_after_failures(const JobSet& jobset) {
  const auto at = claims_.find(jobset.metadata.uid);
  if (at != claims_.end() && failed_pods_(jobset) > at->second.failed_pods) claims_.erase(at);
}

std::set<std::string> KnownClaims::created_by(const kube::Plan& plan) {
  std::set<std::string> names;
  for (const auto& action : plan.actions) {
    if (action.resource == kube::kPersistentVolumeClaims &&
        action.verb == kube::Action::Verb::kCreate)
      names.insert(action.key.name);
  }
  return names;
}

}  // namespace trainer
