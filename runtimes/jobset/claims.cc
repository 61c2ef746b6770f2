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
      kube::Action action;
      action.verb = kube::Action::Verb::kCreate;
      action.resource = kube::kPersistentVolumeClaims;
      action.key = {context.jobset.metadata.ns, std::move(name)};
      action.body = std::move(claim);
      // The owner does not matter where a claim of that name exists already: it was kept to be used
      // again.
      action.failure_reason = "PVCCreationFailed";
      context.plan.actions.push_back(std::move(action));
      // Pods that mount a claim that could not be made would only wait.
      context.job_stage = 1;
    }
  }
}

}  // namespace trainer::jobset
