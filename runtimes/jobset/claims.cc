// The claims of volumeClaimPolicies (JobSet, pkg/controllers). Suspended JobSets have them too.
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void ensure_claims(ReconcileContext& context) {
  for (const VolumeClaimPolicy& policy : context.jobset.spec.volumeClaimPolicies) {
    for (const kube::Json& claim_template : policy.templates) {
      kube::Json claim = make_claim(context.jobset, policy, claim_template);
      std::string name(claim["metadata"].get_string("name"));
      if (context.observed.claims.contains(name)) continue;
      // No owner_uid: a claim of that name that exists already was kept to be used again.
      context.plan.actions.push_back({.resource = kube::kPersistentVolumeClaims,
                                      .key = {context.jobset.metadata.ns, std::move(name)},
                                      .body = std::move(claim),
                                      .failure_reason = "PVCCreationFailed"});
      // Pods that mount a claim that could not be made would only wait.
      context.job_stage = 1;
    }
  }
}

}  // namespace trainer::jobset
