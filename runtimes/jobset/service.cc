// The headless Service that gives pods their host names (JobSet,
// pkg/controllers/jobset_controller.go).
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void ensure_service(ReconcileContext& context) {
  if (context.observed.service_exists) return;
  auto service = headless_service(context.jobset);
  if (!service) return;
  kube::Action action;
  action.verb = kube::Action::Verb::kCreate;
  action.resource = kube::kServices;
  action.key = {context.jobset.metadata.ns, subdomain(context.jobset)};
  action.body = std::move(*service);
  action.owner_uid = context.jobset.metadata.uid;
  action.takes_unowned = true;  // made by hand, say, for several JobSets of one subdomain
  action.failure_reason = "HeadlessServiceCreationFailed";
  context.plan.actions.push_back(std::move(action));
}

}  // namespace trainer::jobset
