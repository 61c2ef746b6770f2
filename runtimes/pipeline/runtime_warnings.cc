// Runtimes get warnings about what the Python SDK demands of them, and about settings that
// contradict each other.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "runtimes/pipeline/draft.hh"
#include "runtimes/pipeline/failure_policy.hh"
#include "runtimes/pipeline/pipeline.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/trainer_label.hh"
#include "runtimes/pipeline/unused.hh"
#include "runtimes/pipeline/warnings.hh"

namespace trainer {

namespace {

bool is_trainer(const ReplicatedJob& job) {
  return ancestor_of(job) == pipeline::kTrainerStep;
}

const JobSetSpec* jobs_of(const Runtime& runtime) {
  return replicated_jobs_of(runtime).empty() ? nullptr : &*runtime.spec.template_->spec;
}

// Returns the container from which the SDK reads how a runtime trains.
const kube::Json* sdk_container(const JobSetSpec& spec) {
  for (const ReplicatedJob& job : spec.replicatedJobs) {
    if (!is_trainer(job)) continue;
    const kube::Json& pod_spec = job.template_.get_path({"spec", "template", "spec"});
    for (const kube::Json& container : pod_spec.get_array("containers"))
      if (container.get_string("name") == pipeline::kNode) return &container;
  }
  return nullptr;
}

void warn_about_sdk(const Runtime& runtime, std::vector<std::string>& out) {
  if (!runtime.metadata.labels.contains(kFrameworkLabel))
    out.push_back(
        fmt::format("metadata.labels: without label {} the Python SDK does not list this runtime",
                    kFrameworkLabel));
  if (!runtime.spec.mlPolicy)
    out.push_back(
        "spec.mlPolicy: without it the Python SDK fails to list any runtime at all; an empty one "
        "(mlPolicy: {}) is enough");
  const JobSetSpec* spec = jobs_of(runtime);
  if (spec == nullptr) {
    out.push_back(
        "spec.template.spec.replicatedJobs: without a job the Python SDK fails to list any runtime "
        "at all");
    return;
  }
  const kube::Json* container = sdk_container(*spec);
  if (container == nullptr || container->get_string("image").empty())
    out.push_back(
        fmt::format("spec.template.spec.replicatedJobs: the Python SDK needs a job labelled {}={} "
                    "with a container {} that has an image",
                    kAncestorLabel, pipeline::kTrainerStep, pipeline::kNode));
  else if (!pipeline::is_readable_by_sdk(*container))
    out.push_back(fmt::format(
        "spec.template.spec.replicatedJobs: the limits of container node name neither cpu nor a "
        "device that the Python SDK knows ({}), so it fails to list any runtime; add a cpu limit",
        pipeline::names_read_by_sdk()));
}

// Jobs of the runtime cannot start, or restart differently than it says.
void warn_about_failure_policies(const Runtime& runtime, std::vector<std::string>& out) {
  const auto warn = [&](const std::vector<FailurePolicyRule>& rules, const std::string& path) {
    const auto errors = pipeline::check_failure_rules(rules, replicated_jobs_of(runtime), path);
    if (!errors.empty()) out.push_back(kube::to_string(errors));
  };
  const JobSetSpec* spec = jobs_of(runtime);
  if (spec != nullptr && spec->failurePolicy)
    warn(spec->failurePolicy->rules, "spec.template.spec.failurePolicy");
  if (const auto& defaults = runtime.spec.runPolicy; defaults && defaults->failurePolicy)
    warn(defaults->failurePolicy->rules, "spec.runPolicy.failurePolicy");
  const auto& policy = runtime.spec.mlPolicy;
  if (pipeline::process_restarts_by_default(runtime) > 0 && !(policy && policy->torch))
    out.push_back(
        "spec.runPolicy.failurePolicy.processRestarts has no effect without spec.mlPolicy.torch: "
        "only torchrun restarts processes in their pods");
}

void warn_about_gangs(const Runtime& runtime, std::vector<std::string>& out) {
  const PodGroupPolicy policy = runtime.spec.podGroupPolicy.value_or(PodGroupPolicy());
  std::vector<std::string_view> set;
  if (policy.coscheduling) set.push_back("coscheduling");
  if (policy.volcano) set.push_back("volcano");
  if (policy.workload) set.push_back("workload");
  if (set.size() > 1)
    out.push_back(
        fmt::format("spec.podGroupPolicy: {} are set, so each pod belongs to {} gangs; keep one",
                    fmt::join(set, " and "), set.size()));
}

}  // namespace

std::vector<std::string> warn_runtime(const Runtime& runtime, const PipelineOptions& options) {
  std::vector<std::string> out;
  if (pipeline::is_deprecated(runtime))
    out.push_back(fmt::format("ClusterTrainingRuntime \"{}\" {}", runtime.metadata.name,
                              pipeline::deprecation_notice()));
  warn_about_sdk(runtime, out);
  warn_about_failure_policies(runtime, out);
  warn_about_gangs(runtime, out);
  const auto& policy = runtime.spec.mlPolicy;
  for (const pipeline::LabelWarning& warning : pipeline::warn_about_trainer_label(
           replicated_jobs_of(runtime), policy ? &*policy : nullptr, *options.plugins))
    out.push_back(pipeline::text_for_runtime(warning));
  pipeline::warn_about_unused(runtime, out);
  for (const auto& plugin : *options.plugins) plugin->warn_runtime(runtime, out);
  for (std::string& warning : pipeline::warn_about_plugins(runtime, options))
    out.push_back(std::move(warning));
  return out;
}

}  // namespace trainer
