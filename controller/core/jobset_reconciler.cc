#include "controller/core/jobset_reconciler.hh"

#include <utility>

#include "kube/client/give_way.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/trainjob/unreadable.hh"

namespace trainer {
namespace {

using kube::Result;
using kube::Task;

const kube::Resource kClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};

// The expander's view of a pod, from what the stores keep.
jobset::PodView view_of(const TrainPodView& pod) {
  jobset::PodView view;
  view.name = pod.name;
  view.phase = pod.phase;
  view.replicated_job = pod.replicated_job;
  view.job_index = pod.job_index;
  view.restart_attempt = std::to_string(pod.attempt);
  view.in_place_attempt = pod.in_place_attempt;
  view.restart_count = pod.restart_count;
  view.is_disrupted = pod.is_infrastructure_failure;
  return view;
}

}  // namespace

Task<Result<Requeue>> JobSetReconciler::reconcile(kube::ObjectKey key) {
  const auto stored = stores_.jobsets.find(key);
  if (!stored) co_return Requeue{};
  const auto decoded = jobsets_.of(stored);
  const auto& jobset = decoded->jobset;
  if (stored->text.size() >= kube::kLargeText) co_await kube::give_way();
  if (!jobset) {
    // The schema keeps such objects out; one that slipped through must not be retried for ever.
    Plan told;
    told.events.push_back(unreadable_event(jobset.error()));
    Subject unreadable{kJobSets, key, stored->uid, stored->resource_version};
    co_return co_await shell_.carry_out(std::move(unreadable), std::move(told));
  }
  if (!expansion_.expands(decoded->managed_by)) co_return Requeue{};
  if (auto learnt = co_await learn_claims(*jobset); !learnt) {
    co_return tl::unexpected(learnt.error());
  }

  jobset::Observed observed{*jobset};
  observed.jobs = stores_.jobs_of(stored->uid);
  observed.removed_jobs = stores_.removed_jobs_of(stored->uid);
  std::vector<jobset::PodView> pods;
  if (jobset::needs_pods(*jobset, gates_)) {
    for (const auto* pod : stores_.pods_of(key)) pods.push_back(view_of(*pod));
    for (const auto& pod : pods) observed.pods.push_back(&pod);
  }
  if (const auto service = jobset::headless_service(*jobset)) {
    const auto standing = stores_.services.find(kube::ObjectMeta::of(*service).key());
    observed.service_exists = standing && standing->controller_uid == stored->uid;
  }
  if (const auto known = claims_.find(stored->uid); known != claims_.end()) {
    observed.claims = known->second;
  }
  observed.now = clock_.now();
  observed.gates = gates_;
  observed.is_of_trainjob = stored->controller_kind == "TrainJob";

  Plan plan = jobset::plan(observed);
  for (const auto& action : plan.actions) {
    if (action.resource == kClaims && action.verb == Action::Verb::kCreate) {
      claims_[stored->uid].insert(action.key.name);  // taken back below when it fails
    }
  }
  Subject subject{kJobSets, key, stored->uid, stored->resource_version};
  auto done = co_await shell_.carry_out(std::move(subject), std::move(plan));
  if (!done) claims_.erase(stored->uid);
  co_return done;
}

JobSetReconciler::Decoded JobSetReconciler::decode(kube::Json object) {
  jobset::apply_webhook_defaults(object);  // it may have been made while no webhook was served
  Decoded decoded{read_jobset(object), std::nullopt};
  // One that is ours is expanded whatever name it has us by.
  if (decoded.jobset) decoded.managed_by = std::exchange(decoded.jobset->spec.managedBy, {});
  return decoded;
}

Task<Result<void>> JobSetReconciler::learn_claims(const JobSet& jobset) {
  const auto& uid = jobset.metadata.uid;
  const bool is_new = jobset.status.replicatedJobsStatus.empty();
  if (jobset.spec.volumeClaimPolicies.empty() || is_new || claims_.count(uid)) {
    co_return Result<void>{};
  }
  auto& known = claims_[uid];
  for (const auto& policy : jobset.spec.volumeClaimPolicies) {
    for (const auto& claim : policy.templates) {
      const kube::ObjectKey key{jobset.metadata.ns,
                                kube::ObjectMeta::of(claim).name + "-" + jobset.metadata.name};
      auto standing = co_await client_.get(kClaims, key);
      if (standing) {
        known.insert(key.name);
      } else if (standing.error().code != kube::ErrorCode::kNotFound) {
        claims_.erase(uid);
        co_return tl::unexpected(standing.error());
      }
    }
  }
  co_return Result<void>{};
}

void JobSetReconciler::forget(const std::string& uid) {
  claims_.erase(uid);
  shell_.forget(uid);
}

}  // namespace trainer
