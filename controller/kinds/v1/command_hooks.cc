#include "controller/kinds/v1/command_hooks.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/kinds/common/devices.hh"
#include "controller/kinds/common/v1_hooks.hh"
#include "controller/registration/command_hooks.hh"
#include "runtimes/admission/v1job.hh"
#include "runtimes/lifecycle/failure.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/v1/plan.hh"
#include "runtimes/views/labels.hh"

namespace trainer::v1 {
namespace {

using kube::FieldErrors;
using kube::Json;

tl::expected<Rendered, FieldErrors> render(const Json& object, const Framework& framework,
                                           const Settings& settings) {
  const auto job = read_job(object, framework.replica_specs);
  if (!job) return tl::unexpected(job.error());
  return render_children(all_children(framework, *job, settings));
}

// Adds how many pods run, and if a job that has not ended lacks some, also to the evidence.
void add_nodes(const V1Job& job, const Framework& framework, ObjectState& state) {
  std::int64_t wanted = 0;
  std::int64_t running = 0;
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    wanted += std::max(spec.replicas.value_or(1), 0);
  if (job.status.replicaStatuses) {
    for (const auto& [role, counters] : *job.status.replicaStatuses)
      running += std::int64_t{counters.active} + counters.succeeded;
  }
  state.nodes = fmt::format("{}/{}", running, wanted);
  if (running >= wanted || state.is_finished || job.is_suspended()) return;
  state.evidence.push_back(fmt::format("{} of {} pods run", running, wanted));
  if (running == 0) return;
  state.next_step = fmt::format(
      "Where the other pods find no machine, those that run wait for them and keep their devices: "
      "with a gang scheduler (--gang-scheduler-name) the pods of a {} start together or not at "
      "all.",
      framework.resource.kind);
}

std::string advice(const V1Job& job, const Framework& framework, const ObjectState& state,
                   std::string_view program) {
  if (state.is_failed) {
    return fmt::format(
        "Read the output with `{} logs -n {} {}/{}`, fix the cause, and start a new "
        "job.",
        program, job.metadata.ns, framework.singular, job.metadata.name);
  }
  if (state.phase == "Suspended")
    return "Set spec.runPolicy.suspend to false, or wait for the queue that has set it.";
  if (!state.phase.empty()) return {};
  return "Check that the controller runs, and reconciles this kind (--enable-scheme): `kubectl get "
         "deployments,leases -A`.";
}

tl::expected<ObjectState, FieldErrors> read_state(const Json& object, const Framework& framework,
                                                  std::string_view program) {
  const auto job = read_job(object, framework.replica_specs);
  if (!job) return tl::unexpected(job.error());
  ObjectState state = state_of_conditions(*job, kManager);
  if (const auto& failure = job->status.firstFailure) {
    state.failed_pod = failure->pod;
    state.evidence.push_back("first failure: " + describe(*failure));
  }
  add_nodes(*job, framework, state);
  add_refusal(job->status, state);
  if (state.next_step.empty()) state.next_step = advice(*job, framework, state, program);
  return state;
}

std::optional<PodPlace> read_place(const kube::ObjectMeta& pod) {
  return read_role_place(pod, kV1ReplicaTypeKey);
}

}  // namespace

void add_job_hooks(KindRegistration& registration, const Framework& framework) {
  RenderHook hook;
  hook.resource = framework.resource;
  hook.validate = [&framework](const AdmissionRequest& request, const RenderInputs& inputs) {
    return validate_v1job(request, framework, inputs.configuration.trainingOperator.settings);
  };
  hook.render = [&framework](const Json& object, const RenderInputs& inputs) {
    return render(object, framework, inputs.configuration.trainingOperator.settings);
  };
  registration.render = {std::move(hook)};
  const ReadState read = [&framework](const Json& object, std::string_view program) {
    return read_state(object, framework, program);
  };
  registration.why = {kV1JobNameKey, read};
  registration.logs = {kV1JobNameKey, read, read_place};
  JobsHook jobs{"runPolicy", kManager};
  jobs.count_devices = [&framework](const Json& object) {
    return std::optional(devices_of_roles(object, framework.replica_specs));
  };
  registration.jobs = std::move(jobs);
}

}  // namespace trainer::v1
