#include "controller/kinds/registry.hh"

#include <memory>

#include "controller/kinds/jobset/registration.hh"
#include "controller/kinds/placement/registration.hh"
#include "controller/kinds/trainjob/registration.hh"

namespace trainer {

Registry production_registry(const KindOptions& options) {
  const auto jobsets = std::make_shared<JobSetState>(options.configuration.jobsetController.mode);
  Registry registry;
  registry.push_back(trainjob_registration(options, jobsets));
  registry.push_back(jobset_registration(options, jobsets));
  registry.push_back(placement_registration(options, jobsets));
  return registry;
}

}  // namespace trainer
