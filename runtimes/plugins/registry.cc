#include "runtimes/plugins/registry.hh"

#include "runtimes/jobset/construct.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/plugins/mpi/wait_for_hosts.hh"

namespace trainer {
namespace pipeline {

// Appends the plugin that the plugin's file makes: `std::unique_ptr<const Plugin> make_NAME()`.
#define ADD_PLUGIN(name)                              \
  extern std::unique_ptr<const Plugin> make_##name(); \
  all.push_back(make_##name())

// The plugins are in the order in which they run within a phase.
static Plugins make_plugins() {
  Plugins all;
  // This one comes first: it also serves xgboost and flux, whose own plugins read the count that it
  // sets, and it puts the job's env in front of theirs.
  ADD_PLUGIN(plainml);
  // At most one of these is active in a runtime, so their order is only alphabetical.
  ADD_PLUGIN(flux);
  ADD_PLUGIN(jax);
  ADD_PLUGIN(mpi);
  ADD_PLUGIN(torch);
  ADD_PLUGIN(xgboost);
  // These come after the frameworks: the job's own settings of its containers win over those of a
  // framework.
  ADD_PLUGIN(initializers);
  ADD_PLUGIN(overrides);
  // This one comes after overrides, whose image its init container has.
  ADD_PLUGIN(code);
  // This one comes after both: the job's own env may have the cache's sizes and its address.
  ADD_PLUGIN(data_cache);
  // This one comes after the job's own env, so that a job cannot point its reports elsewhere.
  ADD_PLUGIN(progress);
  // This one comes after progress, whose token its reports have.
  ADD_PLUGIN(reporter);
  ADD_PLUGIN(restarts);
  // This one comes after all that give a launcher variables, which it passes on.
  ADD_PLUGIN(mpi_environment);
  // Gangs have a phase of their own, so their place does not matter.
  ADD_PLUGIN(coscheduling);
  ADD_PLUGIN(kai);
  ADD_PLUGIN(volcano);
  ADD_PLUGIN(workload);
  return all;
}

}  // namespace pipeline

const pipeline::Plugins& production_plugins() {
  static const pipeline::Plugins kPlugins = pipeline::make_plugins();
  return kPlugins;
}

jobset::JobDecorators production_job_decorators() {
  // keep_last_lines() comes last: it is for the containers that the others add, too.
  static constexpr jobset::JobDecorator kDecorators[] = {mpi::wait_for_hosts,
                                                         jobset::keep_last_lines};
  return kDecorators;
}

}  // namespace trainer
