// A reconcile of an MPIJob (mpi-operator, pkg/controller: syncHandler).
#include "runtimes/mpijob/plan.hh"

#include <fmt/format.h>

#include <utility>

#include "runtimes/mpijob/context.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;

bool is_owned(const v1::V1Job& job) {
  return !job.metadata.deletion_timestamp &&
         job.spec.runPolicy.managedBy.value_or(std::string(kMPIManager)) == kMPIManager;
}

// The launcher's Job, and the objects that its pods use, stay in every case.
void clean_up(MPIJobContext& context) {
  context.plan.memory = kube::Plan::Memory::kForget;
  if (*context.job.spec.runPolicy.cleanPodPolicy == "None") return;
  remove_workers(context);
  remove_pod_group(context);
}

void sync_children(MPIJobContext& context) {
  sync_objects(context);
  if (context.is_suspended()) {
    remove_workers(context);
    remove_pod_group(context);
  } else {
    sync_pod_group(context);
    sync_workers(context);
  }
  sync_launcher(context);
}

}  // namespace

MPIJobPlan plan(const MPIJobObserved& observed) {
  if (!is_owned(observed.job)) return {};
  MPIJobContext context(observed);
  if (const auto errors = validate_defaulted(context.job, observed.settings); !errors.empty()) {
    context.relay("Warning", "ValidationError",
                  "Found validation errors: " + kube::to_string(errors));
    return std::move(context.plan);
  }
  context.place_workers();
  if (context.is_finished()) {
    clean_up(context);
    return std::move(context.plan);
  }
  begin_status(context);
  if (!is_launcher_over(context)) sync_children(context);
  if (!context.plan.needs_objects.empty()) {
    MPIJobPlan needs;
    needs.needs_objects = std::move(context.plan.needs_objects);
    needs.relayed = observed.relayed.value_or(std::unordered_set<std::string>());
    return needs;
  }
  update_status(context);
  finish_status(context);
  return std::move(context.plan);
}

std::vector<Json> all_children(const v1::V1Job& job, const MPISettings& settings) {
  v1::V1Job running = job;
  running.spec.runPolicy.suspend = false;
  // The launcher is shown, too, if it would wait for ready workers.
  running.spec.launcherCreationPolicy = "AtStartup";
  const kube::NamedObjects none;
  MPIJobObserved observed{.job = running, .objects = none, .settings = settings};
  std::vector<Json> children;
  MPIJobContext context(observed);
  if (!validate_defaulted(context.job, settings).empty()) return children;
  context.place_workers();
  sync_children(context);
  for (kube::Action& action : context.plan.actions) children.push_back(std::move(action.body));
  return children;
}

}  // namespace trainer::mpijob
