#include "controller/kinds/registry.hh"

#include <memory>

#include "controller/kinds/jobset/registration.hh"
#include "controller/kinds/mpijob/registration.hh"
#include "controller/kinds/placement/registration.hh"
#include "controller/kinds/trainjob/registration.hh"
#include "controller/kinds/v1/registration.hh"

namespace trainer {
namespace {

// The Lease of upstream's controller is in another namespace. With kShare neither controller takes
// the other's JobSets, whether upstream's runs or not.
JobSetControllerMode mode_of(const Configuration& configuration) {
  const JobSetControllerMode mode = configuration.jobsetController.mode;
  const bool is_unknown = configuration.namespaced && mode == JobSetControllerMode::kAuto;
  return is_unknown ? JobSetControllerMode::kShare : mode;
}

}  // namespace

Registry production_registry(const KindOptions& options) {
  const auto jobsets = std::make_shared<JobSetState>(mode_of(options.configuration));
  Registry registry;
  const Configuration::TrainingOperator& v1_jobs = options.configuration.trainingOperator;
  const Configuration::MPIOperator& mpi_jobs = options.configuration.mpiOperator;
  if (!v1_jobs.only && !mpi_jobs.only) {
    registry.push_back(trainjob_registration(options, jobsets));
    registry.push_back(jobset_registration(options, jobsets));
    // This kind reads nodes, and a webhook places its pods.
    if (!options.configuration.namespaced)
      registry.push_back(placement_registration(options, jobsets));
  }
  for (const v1::Framework* framework : v1_jobs.schemes)
    registry.push_back(v1::job_registration(options, *framework));
  if (mpi_jobs.enabled) registry.push_back(mpijob::mpijob_registration(options));
  return registry;
}

Registry full_registry() {
  KindOptions options;
  const auto all = v1::frameworks();
  options.configuration.trainingOperator.schemes = {all.begin(), all.end()};
  options.configuration.mpiOperator.enabled = true;
  return production_registry(options);
}

}  // namespace trainer
