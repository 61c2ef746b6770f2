#include "controller/kinds/mpijob/command_hooks.hh"

#include <fmt/format.h>

#include <utility>

#include "controller/kinds/common/devices.hh"
#include "controller/kinds/common/v1_hooks.hh"
#include "runtimes/mpijob/plan.hh"
#include "runtimes/views/labels.hh"

namespace trainer::mpijob {
namespace {

using kube::FieldErrors;
using kube::Json;

tl::expected<Rendered, FieldErrors> render(const Json& object, const RenderInputs& inputs) {
  const auto job = v1::read_job(object, kReplicaSpecs);
  if (!job) return tl::unexpected(job.error());
  const MPISettings& settings = inputs.configuration.mpiOperator.settings;
  // No webhook checks a job: the controller reports these errors in events.
  if (const auto errors = validate(*job, settings); !errors.empty()) return tl::unexpected(errors);
  Rendered rendered = render_children(all_children(*job, settings));
  rendered.warnings = warnings_of(*job, settings);
  return rendered;
}

// Returns what the owner of the job can do.
std::string advice(const v1::V1Job& job, const ObjectState& state, std::string_view program) {
  if (state.is_failed)
    return fmt::format(
        "Read the output with `{} logs -n {} mpijob/{}`, fix the cause, and start a new job.",
        program, job.metadata.ns, job.metadata.name);
  if (state.phase == "Suspended")
    return "Set spec.runPolicy.suspend to false, or wait for the queue that has set it.";
  if (const FieldErrors errors = validate(job); !errors.empty())
    return "Correct the job: " + kube::to_string(errors);
  if (state.phase.empty())
    return "Check that the controller runs, and reconciles MPIJobs of v2beta1 "
           "(mpiOperator.enabled): `kubectl get deployments,leases -A`.";
  return {};
}

void add_workers(const v1::V1Job& job, ObjectState& state) {
  const auto at = job.spec.replicaSpecs.find("Worker");
  if (at == job.spec.replicaSpecs.end() || !job.status.replicaStatuses) return;
  const auto counters = job.status.replicaStatuses->find("Worker");
  const std::int32_t running =
      counters == job.status.replicaStatuses->end() ? 0 : counters->second.active;
  const std::int32_t wanted = at->second.replicas.value_or(0);
  state.nodes = fmt::format("{}/{}", running, wanted);
  if (running < wanted)
    state.evidence.push_back(fmt::format("{} of {} workers run", running, wanted));
}

tl::expected<ObjectState, FieldErrors> read_state(const Json& object, std::string_view program) {
  const auto job = v1::read_job(object, kReplicaSpecs);
  if (!job) return tl::unexpected(job.error());
  ObjectState state = state_of_conditions(*job, kMPIManager);
  // A job with an evicted worker is Failed, and may still succeed.
  state.is_finished = state.is_finished && job->status.completionTime;
  if (!state.is_finished && !job->is_suspended()) add_workers(*job, state);
  add_refusal(job->status, state);
  if (state.next_step.empty()) state.next_step = advice(*job, state, program);
  return state;
}

std::optional<PodPlace> read_place(const kube::ObjectMeta& pod) {
  return read_role_place(pod, kV1JobRoleKey);
}

}  // namespace

void add_mpijob_hooks(KindRegistration& registration) {
  RenderHook hook;
  hook.resource = kMPIJobs;
  hook.render = render;
  registration.render = {std::move(hook)};
  registration.why = {kV1JobNameKey, read_state};
  registration.logs = {kV1JobNameKey, read_state, read_place};
  registration.jobs = {"runPolicy", kMPIManager, "Running", [](const Json& object) {
                         return std::optional(devices_of_roles(object, kReplicaSpecs));
                       }};
}

}  // namespace trainer::mpijob
