// The headless Service that gives pods their host names: jobset-contract 2.3.
#include <utility>

#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

void ensure_service(Pass& pass) {
  if (pass.observed.service_exists) return;
  auto service = headless_service(pass.jobset);
  if (!service) return;
  Action action;
  action.verb = Action::Verb::kCreate;
  action.resource = kServices;
  action.key = {pass.jobset.metadata.ns, subdomain(pass.jobset)};
  action.body = std::move(*service);
  action.owner_uid = pass.jobset.metadata.uid;
  action.takes_unowned = true;  // made by hand, say, for several JobSets of one subdomain
  action.failure_reason = "HeadlessServiceCreationFailed";
  pass.plan.actions.push_back(std::move(action));
}

}  // namespace trainer::jobset
