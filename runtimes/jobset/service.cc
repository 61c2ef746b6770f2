// The headless Service gives pods their host names (JobSet, pkg/controllers/jobset_controller.go).
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void ensure_service(JobSetContext& context) {
  if (context.observed.service_exists) return;
  auto service = headless_service(context.jobset);
  if (!service) return;
  context.plan.actions.push_back(
      {.resource = kube::kServices,
       .key = {context.jobset.metadata.ns, subdomain(context.jobset)},
       .body = std::move(*service),
       .owner_uid = context.jobset.metadata.uid,
       // For example, a user made it for several JobSets of one subdomain.
       .unowned = kube::Action::Unowned::kAccept,
       .failure_reason = std::string(kServiceCreationFailed)});
}

}  // namespace trainer::jobset
