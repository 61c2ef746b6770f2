#include "controller/kinds/trainjob/command_hooks.hh"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "api/api.hh"
#include "controller/kinds/jobset/command_hooks.hh"
#include "controller/kinds/trainjob/pipeline_settings.hh"
#include "kube/model/saturating.hh"
#include "runtimes/admission/patch_changes.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/lifecycle/failure.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/goodput.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/stacks.hh"
#include "runtimes/trainjob/stragglers.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using kube::FieldErrors;
using kube::Json;

// Offline, it is assumed that all claims and priority classes exist.
AdmissionLookups lookups(const RenderInputs& inputs) {
  AdmissionLookups lookups;
  lookups.runtime = [&inputs](const std::string& kind, const std::string& ns,
                              const std::string& name) -> std::shared_ptr<const Json> {
    if (kind == kTrainingRuntimes.kind) return inputs.find(kTrainingRuntimes, {ns, name});
    if (kind != kClusterTrainingRuntimes.kind) return nullptr;
    return inputs.find(kClusterTrainingRuntimes, {"", name});
  };
  lookups.is_warned = [&inputs](const Runtime& runtime, const std::string& warning) {
    const bool is_namespaced = runtime.kind == kTrainingRuntimes.kind;
    return inputs.is_warned &&
           inputs.is_warned(is_namespaced ? kTrainingRuntimes : kClusterTrainingRuntimes,
                            runtime.metadata.key(), warning);
  };
  return lookups;
}

tl::expected<Rendered, FieldErrors> render_trainjob(const Json& object,
                                                    const RenderInputs& inputs) {
  const auto job = read_stored_trainjob(object);
  if (!job) return tl::unexpected(job.error());
  const RuntimeRef& ref = job->spec.runtimeRef;
  const AdmissionLookups known = lookups(inputs);
  const auto stored =
      known.runtime(ref.kind.value_or(kClusterTrainingRuntimes.kind), job->metadata.ns, ref.name);
  const auto runtime = read_runtime(stored ? *stored : Json());
  if (!runtime) return tl::unexpected(runtime.error());

  PipelineOptions options = pipeline_settings(inputs.configuration);
  // Offline, the certificate is unknown; the Service's name is the installation's default.
  options.status_server_url =
      "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443";
  std::vector<Explanation> explanations;
  auto built = build(*job, *runtime, options, inputs.is_explained ? &explanations : nullptr);
  if (!built) return tl::unexpected(std::move(built.error()));
  apply_schema_defaults(built->jobset);
  Rendered rendered;
  if (const auto jobset = read_jobset(built->jobset)) {
    if (FieldErrors errors = jobset::metadata_errors(*jobset); !errors.empty())
      return tl::unexpected(of_child(built->jobset, std::move(errors)));
    rendered.errors = of_child(built->jobset, jobset::child_errors(*jobset));
  }
  rendered.warnings = take_warnings(*built, *runtime, known);
  rendered.objects.push_back({built->jobset, std::move(explanations)});
  for (DependentObject& dependent : built->dependents)
    rendered.objects.push_back({std::move(dependent.object), {}});
  if (!inputs.has_jobs || !rendered.errors.empty()) return rendered;
  FieldErrors errors = add_jobs(built->jobset, inputs.configuration.featureGates,
                                production_job_decorators(), rendered);
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return rendered;
}

std::string without_line_ends(std::string_view text) {
  return std::string(text.substr(0, text.find_last_not_of("\n ") + 1));
}

// The failure is left out if the status message contains it already.
void add_first_failure(const TrainJobStatus& status, ObjectState& state) {
  if (!status.firstFailure) return;
  const FirstFailure& first = *status.firstFailure;
  state.failed_pod = first.pod;
  const std::string failure = describe(first);
  if (state.message.find(failure) == std::string::npos)
    state.evidence.push_back("first failure: " + failure);
  const std::string lines = without_line_ends(first.message);
  if (!lines.empty() && state.message.find(lines) == std::string::npos)
    state.evidence.push_back("its last lines:\n" + lines);
  if (first.message.empty()) return;
  state.last_output = fmt::format("[{}-{}] last lines of {}, from the TrainJob's status:\n{}",
                                  first.job, first.index.value_or(0), first.pod, first.message);
}

void add_restarts(const std::string& budget, ObjectState& state) {
  if (budget.empty()) return;
  const std::size_t end = budget.find(" (");  // the restarts in pods
  const std::size_t plus = budget.find('+');
  std::string line = fmt::format("restarts: {} of failurePolicy.maxRestarts",
                                 budget.substr(0, std::min(plus, end)));
  if (plus != budget.npos)
    line += fmt::format(", {} of maxDisruptionRestarts", budget.substr(plus + 1, end - plus - 1));
  state.evidence.push_back(std::move(line));
}

void add_process_restarts(const TrainJob& job, ObjectState& state) {
  const std::int32_t restarts = job.status.processRestarts.value_or(0);
  if (restarts == 0) return;
  state.has_process_restarts = true;
  std::string line =
      fmt::format("processes were started again in their pods: {}", count_of(restarts, "time"));
  if (const auto& policy = job.spec.failurePolicy; policy && policy->processRestarts)
    line += fmt::format("; failurePolicy.processRestarts allows each node {}",
                        *policy->processRestarts);
  state.evidence.push_back(std::move(line));
}

bool has_old_output(const TrainJobStatus& status) {
  return makes_steps(status) && (status.elastic || status.processRestarts.value_or(0) > 0);
}

void add_hangs(const TrainJobStatus& status, ObjectState& state) {
  if (!status.hangs || status.hangs->restarts == 0) return;
  state.evidence.push_back(fmt::format("{} ended by a hang, the last one at step {}",
                                       count_of(status.hangs->restarts, "attempt"),
                                       status.hangs->step));
}

// The suspects come before everything else that is known of the job.
void add_stall(const TrainJobStatus& status, ObjectState& state) {
  if (!status.stall) return;
  const StallStatus& stall = *status.stall;
  std::vector<std::string> lines;
  if (!stall.summary.empty()) lines.push_back(stall.summary);
  if (state.message != stall.message) lines.push_back("it stalled: " + stall.message);
  for (const StallGroup& group : stall.groups) {
    lines.push_back(fmt::format("{} at {} ({})", count_of(group.count, "rank"),
                                group.line.empty() ? "an unknown line" : group.line,
                                group.ranks.empty() ? "unknown" : group.ranks));
  }
  state.evidence.insert(state.evidence.begin(), lines.begin(), lines.end());
}

// The job runs, so that its message says nothing of them.
void add_stragglers(const TrainJobStatus& status, ObjectState& state) {
  std::vector<std::string> lines;
  for (const StragglerStatus& each : status.stragglers) lines.push_back(describe(each));
  state.evidence.insert(state.evidence.begin(), lines.begin(), lines.end());
}

void add_goodput(const TrainJobStatus& status, ObjectState& state) {
  if (status.goodput) state.evidence.push_back(describe(*status.goodput));
}

std::string logs_command(const TrainJob& job, std::string_view program) {
  return fmt::format("`{} logs {} -n {}`", program, job.metadata.name, job.metadata.ns);
}

std::string advice_for_failure(const TrainJob& job, std::string_view program) {
  const auto* failed = kube::find_condition(job.status.conditions, "Failed");
  if (failed != nullptr && failed->reason == reasons::kDeadlineExceeded.name) {
    return fmt::format(
        "The job ran longer than {}activeDeadlineSeconds: start a new one with a later "
        "deadline.",
        job.spec.activeDeadlineSeconds ? "spec." : "its runtime's runPolicy.");
  }
  if (job.status.firstFailure && job.status.firstFailure->reason == "OOMKilled") {
    return "The container used more memory than its limit: raise resourcesPerNode, or use less per "
           "process.";
  }
  return fmt::format("Read the output with {}, fix the cause, and start a new job.",
                     logs_command(job, program));
}

std::string advice(const TrainJob& job, std::string_view program) {
  const TrainJobStatus& status = job.status;
  if (status.phase.empty())
    return "Check that the controller runs: `kubectl -n kubeflow-system get pods,leases`.";
  std::string text(advice_for(status.reason, status.message));
  if (status.phase == "Failed" && text.empty()) return advice_for_failure(job, program);
  if (status.phase != "Failed" && status.reason == reasons::kContainersCrashing.name)
    text += fmt::format(" Read it with {}.", logs_command(job, program));
  return text;
}

// The job's own request says it where the number of nodes is known, too. Otherwise the JobSet does.
std::optional<std::int64_t> count_trainjob_devices(const Json& object) {
  const Json& resources = object.get_path({"spec", "trainer", "resourcesPerNode"});
  const Json& asked = object.get_path({"spec", "trainer", "numNodes"});
  const Json& known = object.get_path({"status", "nodes", "total"});
  const Json& nodes = asked.is_int() ? asked : known;
  if (!resources.is_object() || !nodes.is_int()) return std::nullopt;
  const Json container = Json::object({{"resources", resources}});
  return kube::saturating_multiply(nodes.as_int(), pipeline::count_accelerators(container, {}));
}

void remove_patches_of_kueue(Json& spec) {
  Json* patches = spec.find("runtimePatches");
  if (!patches || !patches->is_array()) return;
  std::erase_if(patches->as_array(),
                [](const Json& patch) { return patch.get_string("manager") == kKueueManager; });
  if (patches->empty()) spec.erase("runtimePatches");
}

tl::expected<ObjectState, FieldErrors> read_state(const Json& object, std::string_view program) {
  auto job = read_stored_trainjob(object);
  if (!job) return tl::unexpected(std::move(job.error()));
  return trainjob_state(*job, program);
}

}  // namespace

ObjectState trainjob_state(const TrainJob& job, std::string_view program) {
  const TrainJobStatus& status = job.status;
  ObjectState state;
  state.phase = status.phase;
  state.reason = status.reason;
  state.message = without_line_ends(status.message);
  if (status.nodes) state.nodes = status.nodes->summary();
  if (status.phase.empty()) {
    state.message = job.spec.managedBy && *job.spec.managedBy != kTrainJobController
                        ? fmt::format("spec.managedBy leaves this job to {}", *job.spec.managedBy)
                        : std::string("no controller has reconciled this job yet");
  }
  add_first_failure(status, state);
  add_restarts(status.restartBudget, state);
  add_process_restarts(job, state);
  add_hangs(status, state);
  add_goodput(status, state);
  add_stall(status, state);
  add_stragglers(status, state);
  state.has_old_output = has_old_output(status);
  state.next_step = advice(job, program);
  state.is_finished = job.is_finished();
  state.is_failed = kube::is_condition_true(status.conditions, "Failed");
  return state;
}

void add_trainjob_hooks(KindRegistration& registration) {
  RenderHook runtime;
  runtime.mutate = [](const AdmissionRequest& request, const RenderInputs&) {
    return mutate_runtime(request);
  };
  runtime.validate = [](const AdmissionRequest& request, const RenderInputs& inputs) {
    return validate_runtime(request, pipeline_settings(inputs.configuration));
  };
  runtime.resource = kTrainingRuntimes;
  RenderHook cluster_runtime = runtime;
  cluster_runtime.resource = kClusterTrainingRuntimes;
  cluster_runtime.builtin = builtin_runtimes;
  RenderHook job;
  job.resource = kTrainJobs;
  job.mutate = [](const AdmissionRequest& request, const RenderInputs& inputs) {
    return mutate_trainjob(request, inputs.now);
  };
  job.validate = [](const AdmissionRequest& request, const RenderInputs& inputs) {
    return validate_trainjob(request, lookups(inputs), pipeline_settings(inputs.configuration),
                             jobset_gates(inputs.configuration.featureGates));
  };
  job.render = render_trainjob;
  registration.render = {std::move(runtime), std::move(cluster_runtime), std::move(job)};
  registration.why = {jobset::kJobSetNameKey, read_state, kStacksSuffix};
  registration.logs = {jobset::kJobSetNameKey, read_state, read_jobset_place};
  registration.jobs = {"", kTrainJobController, "Running", count_trainjob_devices,
                       remove_patches_of_kueue};
}

}  // namespace trainer
