// Jobs and runtimes are admitted by these rules (Kubeflow Trainer, pkg/webhooks).

#include <algorithm>
#include <string>
#include <utility>

#include "api/api.hh"
#include "runtimes/pipeline/failure_policy.hh"
#include "runtimes/pipeline/patches.hh"
#include "runtimes/pipeline/pipeline.hh"
#include "runtimes/pipeline/plugin.hh"

namespace trainer {

namespace {

// Returns the parts of a job that the pipeline reads.
kube::Json pipeline_input(const TrainJob& job) {
  kube::Json spec = write(job.spec);
  for (const char* member :
       {"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "managedBy"})
    spec.erase(member);
  return spec;
}

std::string_view container_of_step(std::string_view step) {
  if (step == pipeline::kTrainerStep) return pipeline::kNode;
  if (step == pipeline::kDatasetStep || step == pipeline::kModelStep) return step;
  return {};
}

kube::FieldErrors errors_of(const TrainJob& job, const Runtime& runtime,
                            const PipelineOptions& options) {
  // An unknown name would add something to the template that is no job and no container, so no
  // other rule can be checked.
  kube::FieldErrors errors = pipeline::check_patches(job, runtime);
  if (!errors.empty()) return errors;
  const pipeline::Draft draft = pipeline::prepare(job, runtime, options, pipeline::Journal());
  if (!draft.errors.empty()) return draft.errors;
  for (const pipeline::Plugin* plugin : pipeline::active_plugins(draft))
    plugin->validate(draft, errors);
  if (const auto& own = job.spec.failurePolicy)
    for (kube::FieldError& error :
         pipeline::check_failure_rules(own->rules, draft.spec.replicatedJobs, "spec.failurePolicy"))
      errors.push_back(std::move(error));
  if (auto error = pipeline::check_process_restarts_without_torch(draft))
    errors.push_back(*std::move(error));
  return errors;
}

}  // namespace

kube::FieldErrors validate_trainjob(const TrainJob& job, const TrainJob* before,
                                    const Runtime& runtime, const PipelineOptions& options) {
  // Nothing that these rules read has changed: a runtime that was edited since must not block a
  // label, a suspension or a deletion.
  if (before != nullptr && pipeline_input(job) == pipeline_input(*before)) return {};
  kube::FieldErrors errors = errors_of(job, runtime, options);
  if (before == nullptr || errors.empty()) return errors;
  // Errors that the stored job has already do not count. They come from an annotation (annotations
  // are not checked if only they change) or were accepted by an earlier version. They must not
  // prevent a scheduler from starting the job by its patch.
  kube::erase_known(errors, errors_of(*before, runtime, options));
  return errors;
}

kube::FieldErrors validate_runtime(const Runtime& runtime) {
  kube::FieldErrors errors;
  const auto& jobs = replicated_jobs_of(runtime);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string_view step = ancestor_of(jobs[i]);
    const std::string_view desired = container_of_step(step);
    if (desired.empty()) continue;
    const std::string path = kube::join_index("spec.template.spec.replicatedJobs", i);
    if (jobs[i].replica_count() != 1)
      errors.push_back(
          kube::invalid(path + ".replicas", jobs[i].replica_count(), "always must be 1"));
    const auto& containers =
        jobs[i].template_.get_path({"spec", "template", "spec"}).get_array("containers");
    if (std::any_of(containers.begin(), containers.end(), [desired](const kube::Json& container) {
          return container.get_string("name") == desired;
        }))
      continue;
    errors.push_back(kube::invalid(
        path + ".template.spec.template.spec.containers", containers,
        "must contain the required container for the ancestor: {}; name it {}", step, desired));
  }
  return errors;
}

}  // namespace trainer
