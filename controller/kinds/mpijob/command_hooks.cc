#include "controller/kinds/mpijob/command_hooks.hh"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <utility>

#include "kube/model/pod_checks.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/mpijob/plan.hh"
#include "runtimes/views/labels.hh"

namespace trainer::mpijob {
namespace {

using kube::FieldErrors;
using kube::Json;

tl::expected<Rendered, FieldErrors> render(const Json& object, const RenderInputs& inputs) {
  const auto job = v1::read_job(object, kReplicaSpecs);
  if (!job) return tl::unexpected(job.error());
  // No webhook checks a job: the controller reports these errors in events.
  if (const FieldErrors errors = validate(*job); !errors.empty()) return tl::unexpected(errors);
  Rendered rendered;
  std::set<std::string> seen;  // workers have the same errors
  for (Json& child : all_children(*job, inputs.configuration.mpiOperator.settings)) {
    FieldErrors errors;
    if (child.get_string("kind") == "Pod") kube::check_pod_template(child, "", errors);
    if (errors.empty())
      rendered.objects.push_back({std::move(child), {}});
    else if (seen.insert(kube::to_string(errors)).second)
      for (kube::FieldError& error : of_child(child, std::move(errors)))
        rendered.errors.push_back(std::move(error));
  }
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
  ObjectState state;
  const v1::JobCondition* refusal = nullptr;
  for (const v1::JobCondition& condition : job->status.conditions) {
    if (!condition.is_true()) continue;
    if (condition.type == kReplicaFailure) {
      refusal = &condition;
      continue;
    }
    state.phase = condition.type;
    state.reason = condition.reason;
    state.message = condition.message;
  }
  state.is_failed = state.phase == "Failed";
  state.is_finished = job->status.completionTime && (state.is_failed || state.phase == "Succeeded");
  if (state.phase.empty()) {
    const std::string manager = job->spec.runPolicy.managedBy.value_or(std::string(kMPIManager));
    state.message = manager == kMPIManager
                        ? std::string("no controller has reconciled this job yet")
                        : fmt::format("spec.runPolicy.managedBy leaves this job to {}", manager);
  }
  if (!state.is_finished && !job->is_suspended()) add_workers(*job, state);
  if (refusal && !state.is_finished) {
    state.reason = refusal->reason;
    state.message = refusal->message;
    state.next_step = advice_for(refusal->reason, refusal->message);
  }
  if (state.next_step.empty()) state.next_step = advice(*job, state, program);
  return state;
}

std::optional<PodPlace> read_place(const kube::ObjectMeta& pod) {
  const auto role = pod.labels.find(kV1JobRoleKey);
  if (role == pod.labels.end()) return std::nullopt;
  PodPlace place;
  place.role = role->second;
  if (const auto at = pod.labels.find(kV1ReplicaIndexKey); at != pod.labels.end())
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), place.index);
  return place;
}

}  // namespace

void add_mpijob_hooks(KindRegistration& registration) {
  RenderHook hook;
  hook.resource = kMPIJobs;
  hook.render = render;
  registration.render = {std::move(hook)};
  registration.why = {kV1JobNameKey, read_state};
  registration.logs = {kV1JobNameKey, read_state, read_place};
}

}  // namespace trainer::mpijob
