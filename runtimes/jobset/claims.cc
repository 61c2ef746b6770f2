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
      // One that exists without an owner was kept, or restored, to be used again. The claim of
      // another JobSet goes with that.
      context.plan.actions.push_back({.resource = kube::kPersistentVolumeClaims,
                                      .key = {context.jobset.metadata.ns, std::move(name)},
                                      .body = std::move(claim),
                                      .owner_uid = context.jobset.metadata.uid,
                                      .takes_unowned = true,
                                      .failure_reason = "PVCCreationFailed"});
      // Pods that mount a claim that could not be made would only wait.
      context.job_stage = 1;
    }
  }
}

}  // namespace trainer::jobset
