#include "controller/kinds/jobset/command_hooks.hh"

#include <charconv>
#include <string>
#include <utility>

#include "api/api.hh"
#include "controller/kinds/common/devices.hh"
#include "kube/model/json_text.hh"
#include "kube/model/saturating.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/plan.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

using kube::FieldErrors;
using kube::Json;

std::int32_t number_of(const kube::StringMap& map, std::string_view name) {
  const auto at = map.find(name);
  std::int32_t value = 0;
  if (at != map.end())
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), value);
  return value;
}

tl::expected<Rendered, FieldErrors> render_jobset(const Json& object, const RenderInputs& inputs) {
  const auto jobset = read_jobset(object);
  if (!jobset) return tl::unexpected(jobset.error());
  Rendered rendered;
  rendered.objects.push_back({object, {}});
  rendered.errors = jobset::child_errors(*jobset);
  if (!inputs.has_jobs || !rendered.errors.empty()) return rendered;
  FieldErrors errors = add_jobs(object, inputs.configuration.featureGates, {}, rendered);
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return rendered;
}

// Returns the number of pods that run at the same time.
std::int64_t count_pods(const JobSet& jobset) {
  std::int64_t pods = 0;
  for (const ReplicatedJob& each : jobset.spec.replicatedJobs)
    pods = kube::saturating_add(
        pods, kube::saturating_multiply<std::int64_t>(
                  each.replica_count(), each.template_.get("spec").get_int("parallelism", 1)));
  return pods;
}

std::optional<std::int64_t> count_jobset_devices(const Json& object) {
  std::int64_t devices = 0;
  for (const Json& job : object.get("spec").get_array("replicatedJobs")) {
    const Json& spec = job.get_path({"template", "spec"});
    const std::int64_t pods =
        kube::saturating_multiply(job.get_int("replicas", 1), spec.get_int("parallelism", 1));
    devices = kube::saturating_add(devices, devices_of_pods(pods, spec.get("template")));
  }
  return devices;
}

// JobSets have no phase: the first of these conditions that is true counts as one.
tl::expected<ObjectState, FieldErrors> read_state(const Json& object, std::string_view) {
  auto jobset = read_jobset(object);
  if (!jobset) return tl::unexpected(std::move(jobset.error()));
  ObjectState state;
  state.nodes = std::to_string(count_pods(*jobset));
  for (const char* type : {"Failed", "Completed", "Suspended", "StartupPolicyInProgress"}) {
    if (!kube::is_condition_true(jobset->status.conditions, type)) continue;
    const auto* condition = kube::find_condition(jobset->status.conditions, type);
    state.phase = type;
    state.reason = condition->reason;
    state.message = condition->message;
    break;
  }
  if (state.phase.empty() && !jobset->status.replicatedJobsStatus.empty()) state.phase = "Active";
  state.is_failed = state.phase == "Failed";
  state.is_finished = state.is_failed || state.phase == "Completed";
  const auto* refusal = kube::find_condition(jobset->status.conditions, kReplicaFailure);
  if (refusal && refusal->is_true() && !state.is_finished) {
    state.reason = refusal->reason;
    state.message = refusal->message;
    state.next_step = advice_for(refusal->reason, refusal->message);
  }
  return state;
}

// A small JobSet may have very many Jobs with large templates.
constexpr std::int64_t kMaxTextOfJobs = std::int64_t{64} << 20;

FieldErrors check_size_of_jobs(const Json& jobset) {
  std::int64_t bytes = 0;
  for (const Json& job : jobset.get("spec").get_array("replicatedJobs")) {
    const auto size = static_cast<std::int64_t>(kube::print_json(job.get("template")).size());
    bytes =
        kube::saturating_add(bytes, kube::saturating_multiply(job.get_int("replicas", 1), size));
  }
  if (bytes <= kMaxTextOfJobs) return {};
  return {kube::invalid("spec.replicatedJobs", bytes,
                        fmt::format("all Jobs together are more than {} MiB of JSON: they are not "
                                    "made here, set fewer replicas or leave out the Jobs",
                                    kMaxTextOfJobs >> 20))};
}

}  // namespace

FieldErrors add_jobs(const Json& object, const FeatureGates& gates,
                     jobset::JobDecorators decorators, Rendered& rendered) {
  const auto jobset = read_jobset(object);
  if (!jobset) return jobset.error();
  if (FieldErrors errors = check_size_of_jobs(object); !errors.empty()) return errors;
  if (auto service = jobset::headless_service(*jobset))
    rendered.objects.push_back({std::move(*service), {}});
  for (Json& job : jobset::all_jobs(*jobset, jobset_gates(gates), decorators))
    rendered.objects.push_back({std::move(job), {}});
  return {};
}

std::optional<PodPlace> read_jobset_place(const kube::ObjectMeta& pod) {
  const auto role = pod.labels.find(jobset::kReplicatedJobNameKey);
  if (role == pod.labels.end()) return std::nullopt;
  PodPlace place;
  place.role = role->second;
  place.job_index = number_of(pod.labels, jobset::kJobIndexKey);
  place.has_one_job = number_of(pod.labels, jobset::kReplicatedJobReplicasKey) <= 1;
  place.attempt = pod.annotations.contains(jobset::kExecutionAttemptKey)
                      ? number_of(pod.annotations, jobset::kExecutionAttemptKey)
                      : number_of(pod.labels, jobset::kRestartAttemptKey);
  const bool is_label = pod.labels.contains(kCompletionIndexKey);
  place.index = number_of(is_label ? pod.labels : pod.annotations, kCompletionIndexKey);
  place.is_node = place.role != "dataset-initializer" && place.role != "model-initializer";
  return place;
}

void add_jobset_hooks(KindRegistration& registration) {
  RenderHook hook;
  hook.resource = kJobSets;
  hook.mutate = [](const AdmissionRequest& request, const RenderInputs&) {
    return mutate_jobset(request);
  };
  // Offline, it is assumed that all claims exist.
  hook.validate = [](const AdmissionRequest& request, const RenderInputs& inputs) {
    return validate_jobset(request, {}, jobset_gates(inputs.configuration.featureGates));
  };
  hook.render = render_jobset;
  registration.render = {std::move(hook)};
  registration.why = {jobset::kJobSetNameKey, read_state};
  registration.logs = {jobset::kJobSetNameKey, read_state, read_jobset_place};
  registration.jobs = {"", jobset::kJobSetControllerName, "Active", count_jobset_devices};
}

}  // namespace trainer
