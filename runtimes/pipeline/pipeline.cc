#include "runtimes/pipeline/pipeline.hh"

#include <fmt/format.h>

#include <utility>

#include "api/api.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/pipeline/failure_policy.hh"
#include "runtimes/pipeline/overwrites.hh"
#include "runtimes/pipeline/patches.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/trainer_label.hh"
#include "runtimes/pipeline/warnings.hh"

namespace trainer {

namespace pipeline {

namespace {

kube::Json write_jobset(const Draft& draft) {
  kube::Json metadata =
      kube::Json::object({{"name", draft.name()}, {"namespace", draft.job.metadata.ns}});
  if (!draft.labels.empty()) metadata.set("labels", kube::to_json(draft.labels));
  if (!draft.annotations.empty()) metadata.set("annotations", kube::to_json(draft.annotations));
  kube::Json jobset = kube::Json::object({{"apiVersion", kJobSets.api_version()},
                                          {"kind", kJobSets.kind},
                                          {"metadata", std::move(metadata)},
                                          {"spec", write(draft.spec)}});
  // The defaults are filled in here, because the webhook that fills them does not see writes of
  // this controller.
  jobset::apply_webhook_defaults(jobset);
  return jobset;
}

// The result names all parts that cannot be built.
kube::FieldErrors run_phases(Draft& draft) {
  const std::vector<const Plugin*> plugins = active_plugins(draft);
  for (const Plugin* plugin : plugins) plugin->enforce_ml_policy(draft);
  for (const Plugin* plugin : plugins) plugin->enforce_pod_spec(draft);
  finalize_pod_sets(draft);
  if (kube::FieldErrors errors = check_sizes(draft); !errors.empty()) return errors;
  for (const Plugin* plugin : plugins) plugin->enforce_pod_group_policy(draft);
  for (const Plugin* plugin : plugins) plugin->add_dependents(draft);
  const kube::FieldErrors too_long = check_names(draft);
  draft.errors.insert(draft.errors.end(), too_long.begin(), too_long.end());
  return std::move(draft.errors);
}

}  // namespace

std::vector<const Plugin*> active_plugins(const Draft& draft) {
  std::vector<const Plugin*> active;
  for (const auto& plugin : *draft.options.plugins)
    if (plugin->is_active(draft)) active.push_back(plugin.get());
  return active;
}

Draft prepare(const TrainJob& job, const Runtime& runtime, const PipelineOptions& options,
              Journal journal, const kube::Json* stored) {
  Draft draft(job, runtime, options, journal);
  draft.stored = stored;
  draft.command = trainer_of(job).command;
  draft.args = trainer_of(job).args;
  merge_metadata(draft);
  if (!merge_template(draft) || !check_pods(draft)) return draft;
  normalize(draft);
  count_pods(draft);
  if (!has_framework(draft.ml_policy()))
    for (const auto& plugin : *options.plugins)
      if (const MlPolicy* implied = plugin->implied_ml_policy(draft))
        draft.implied_ml_policy = implied;
  if (!check_copies(draft)) return draft;
  merge_resources(draft);
  return draft;
}

std::vector<std::string> warn_about_plugins(const Runtime& runtime,
                                            const PipelineOptions& options) {
  constexpr std::size_t kFew = 16;  // a review is not to wait for more
  if (replicated_jobs_of(runtime).size() > kFew) return {};
  TrainJob job;  // a job without settings of its own
  job.metadata.name = "job";
  job.metadata.ns = "default";
  job.spec.runtimeRef.name = runtime.metadata.name;
  Draft draft = prepare(job, runtime, options, Journal());
  if (!draft.errors.empty() || !run_phases(draft).empty()) return {};
  return warn_about_overwrites_of_runtime(draft);
}

}  // namespace pipeline

std::vector<std::string> PodSet::endpoints() const {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(pods()));
  for (std::int32_t replica = 0; replica < replicas; ++replica)
    for (std::int32_t pod = 0; pod < count; ++pod)
      names.push_back(fmt::format("{}{}-{}.{}", pod_prefix, replica, pod, subdomain));
  return names;
}

const std::vector<ReplicatedJob>& replicated_jobs_of(const Runtime& runtime) {
  static const std::vector<ReplicatedJob> kNone;
  const auto& jobset = runtime.spec.template_;
  return jobset && jobset->spec ? jobset->spec->replicatedJobs : kNone;
}

tl::expected<Built, kube::FieldErrors> build(const TrainJob& job, const Runtime& runtime,
                                             const PipelineOptions& options,
                                             std::vector<Explanation>* explanations,
                                             const kube::Json* stored) {
  using namespace pipeline;
  // An unknown name in a patch would become a job or a container of its own.
  if (kube::FieldErrors errors = check_patches(job, runtime); !errors.empty())
    return tl::unexpected(std::move(errors));
  Draft draft = prepare(job, runtime, options, Journal(explanations), stored);
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));

  Built built;
  built.warnings = warnings_of(draft);
  for (LabelWarning& warning :
       warn_about_trainer_label(draft.spec.replicatedJobs, draft.ml_policy(), *options.plugins))
    built.runtime_warnings.push_back({fmt::format("spec.runtimeRef: in {} \"{}\", {}", runtime.kind,
                                                  runtime.metadata.name, warning.text),
                                      text_for_runtime(warning)});
  if (kube::FieldErrors errors = run_phases(draft); !errors.empty())
    return tl::unexpected(std::move(errors));
  warn_about_overwrites(draft, built);

  merge_failure_policy(draft);
  draft.spec.suspend = job.spec.suspend;
  built.jobset = write_jobset(draft);
  built.dependents = std::move(draft.dependents);
  built.pod_sets = std::move(draft.pod_sets);
  built.ignored = std::move(draft.ignored);
  return built;
}

}  // namespace trainer
