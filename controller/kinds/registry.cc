#include "controller/kinds/registry.hh"

#include <memory>

#include "controller/kinds/jobset/jobset_kind.hh"
#include "controller/kinds/placement/placement_kind.hh"
#include "controller/kinds/trainjob/trainjob_kind.hh"

namespace trainer {

Registry production_registry(const KindOptions& options) {
  const auto jobsets = std::make_shared<JobSetState>(options.configuration.expander.mode);
  Registry registry;
  registry.push_back(trainjob_kind(options, jobsets));
  registry.push_back(jobset_kind(options, jobsets));
  registry.push_back(placement_kind(options, jobsets));
  return registry;
}

}  // namespace trainer
