#include "runtimes/plugins/registry.hh"

#include "runtimes/jobset/construct.hh"
#include "runtimes/plugins/coscheduling/coscheduling.hh"
#include "runtimes/plugins/flux/flux.hh"
#include "runtimes/plugins/initializers/initializers.hh"
#include "runtimes/plugins/jax/jax.hh"
#include "runtimes/plugins/mpi/mpi.hh"
#include "runtimes/plugins/mpi/wait_for_hosts.hh"
#include "runtimes/plugins/overrides/overrides.hh"
#include "runtimes/plugins/plainml/plainml.hh"
#include "runtimes/plugins/progress/progress.hh"
#include "runtimes/plugins/torch/torch.hh"
#include "runtimes/plugins/volcano/volcano.hh"
#include "runtimes/plugins/xgboost/xgboost.hh"

namespace trainer {
namespace {

pipeline::Plugins make_plugins() {
  using namespace pipeline;
  Plugins all;
  // PlainML first: it also serves xgboost and flux, whose own plugins read the count that it sets,
  // and it puts the job's env in front of theirs.
  all.push_back(std::make_unique<PlainMl>());
  // At most one of these is active in a runtime, so their order is only alphabetical.
  all.push_back(std::make_unique<Flux>());
  all.push_back(std::make_unique<Jax>());
  all.push_back(std::make_unique<Mpi>());
  all.push_back(std::make_unique<Torch>());
  all.push_back(std::make_unique<XgBoost>());
  // After the frameworks: what the job says about its containers wins over what a framework
  // injects.
  all.push_back(std::make_unique<Initializers>());
  all.push_back(std::make_unique<TrainerOverrides>());
  // After the job's own env, so that a job cannot point its reports elsewhere.
  all.push_back(std::make_unique<Progress>());
  // Gangs have a phase of their own, so their place does not matter.
  all.push_back(std::make_unique<Coscheduling>());
  all.push_back(std::make_unique<Volcano>());
  return all;
}

}  // namespace

const pipeline::Plugins& production_plugins() {
  static const pipeline::Plugins kPlugins = make_plugins();
  return kPlugins;
}

jobset::JobDecorators production_job_decorators() {
  // The last lines are kept also of what the decorators before it have added.
  static constexpr jobset::JobDecorator kDecorators[] = {mpi::wait_for_hosts,
                                                         jobset::keep_last_lines};
  return kDecorators;
}

}  // namespace trainer
