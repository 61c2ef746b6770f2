// The claims of volumeClaimPolicies are created here (JobSet, pkg/controllers). Suspended JobSets
// have them too. No watch shows claims, so they are read by name.
#include <algorithm>
#include <string>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

// A new JobSet has no claims yet. If one exists nevertheless, its creation finds it.
bool may_have_claims(const JobSetContext& context) {
  return context.observed.objects && !context.jobset.status.replicatedJobsStatus.empty();
}

// The Job controller replaces failed pods by itself, and a claim that is being deleted ends with
// its last pod. So what was read before a pod failed is not known any more.
bool is_current(const JobSetContext& context, const kube::ReadObject& claim) {
  return claim.is_new || context.failed_pods <= claim.stamp.failures;
}

const kube::ReadObject* known_claim(const JobSetContext& context, std::string_view name) {
  const kube::NamedObjects* const objects = context.observed.objects;
  const auto* claim = objects ? objects->find(kube::kPersistentVolumeClaims, name) : nullptr;
  return claim && is_current(context, *claim) ? claim : nullptr;
}

// No pod can mount a claim that is being deleted. The executor accepts the same owners when a claim
// is in the way of a create.
bool is_usable(const JobSetContext& context, const kube::ReadObject& claim) {
  return claim.exists() && !claim.object->find_path({"metadata", "deletionTimestamp"}) &&
         (claim.controller_uid.empty() || claim.controller_uid == context.jobset.metadata.uid);
}

kube::NamedObject claim_object(const JobSet& jobset, const kube::Json& claim_template) {
  return {
      kube::kPersistentVolumeClaims,
      {jobset.metadata.ns, kube::ObjectMeta::of(claim_template).name + "-" + jobset.metadata.name}};
}

// Calls act(policy, template) for each claim.
template <class Act>
void for_each_claim(const JobSet& jobset, const Act& act) {
  for (const VolumeClaimPolicy& policy : jobset.spec.volumeClaimPolicies)
    for (const kube::Json& claim_template : policy.templates) act(policy, claim_template);
}

bool starts_pods(const kube::Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const kube::Action& action) {
    return action.resource == kube::kJobs && action.verb != kube::Action::Verb::kDelete &&
           !action.body.get("spec").get_bool("suspend");
  });
}

}  // namespace

void ensure_claims(JobSetContext& context) {
  for_each_claim(context.jobset, [&](const VolumeClaimPolicy& policy, const kube::Json& from) {
    const kube::NamedObject named = claim_object(context.jobset, from);
    const kube::ReadObject* const known = known_claim(context, named.key.name);
    if (!known && may_have_claims(context)) {
      context.plan.needs_objects.push_back(named);
      return;
    }
    if (known && is_usable(context, *known)) return;
    // An existing claim without an owner was kept, or restored, to be used again. The claim of
    // another JobSet is deleted together with that JobSet.
    context.plan.actions.push_back({.resource = named.resource,
                                    .key = named.key,
                                    .body = make_claim(context.jobset, policy, from),
                                    .owner_uid = context.jobset.metadata.uid,
                                    .unowned = kube::Action::Unowned::kAccept,
                                    .failure_reason = std::string(kClaimCreationFailed)});
    // Pods would only wait for a claim that could not be created.
    context.job_stage = 1;
  });
}

void read_claims_of_new_pods(JobSetContext& context) {
  if (!starts_pods(context.plan)) return;
  for_each_claim(context.jobset, [&](const VolumeClaimPolicy&, const kube::Json& from) {
    const kube::NamedObject named = claim_object(context.jobset, from);
    const kube::ReadObject* const known = known_claim(context, named.key.name);
    if (known && !known->is_new) context.plan.needs_objects.push_back(named);
  });
}

}  // namespace trainer::jobset
