#include "runtimes/pipeline/unused.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/check_items.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

namespace {

// The metadata belong to a JobSet's template.
void warn_about_metadata(const kube::Json& metadata, const std::string& path,
                         std::vector<std::string>& warnings) {
  for (const char* member : {"name", "namespace", "finalizers"})
    if (!metadata.get(member).empty())
      warnings.push_back(
          fmt::format("{}: has no effect, because the JobSet is named after its TrainJob and takes "
                      "labels and annotations only; leave it out",
                      kube::join_field(path, member)));
}

// completions always equal parallelism, and if a job trains, both follow from the policy.
void warn_about_counts(const Runtime& runtime, const ReplicatedJob& job, const std::string& path,
                       std::vector<std::string>& warnings) {
  const auto& policy = runtime.spec.mlPolicy;
  const kube::Json& spec = job.template_.get("spec");
  const bool is_policys = policy && ancestor_of(job) == kTrainerStep;
  const std::int64_t pods =
      is_policys ? policy->numNodes.value_or(1) : spec.get_int("parallelism", 1);
  const auto warn = [&](const char* member, std::string_view instead) {
    if (spec.get(member).is_int() && spec.get_int(member) != pods)
      warnings.push_back(
          fmt::format("{}.template.spec.{}: {} has no effect, because job {} has {} "
                      "pods; set {}",
                      path, member, spec.get_int(member), job.name, pods, instead));
  };
  warn("parallelism", "spec.mlPolicy.numNodes");
  warn("completions", is_policys ? "spec.mlPolicy.numNodes" : "parallelism");
}

void warn_about_launcher(const Runtime& runtime, std::vector<std::string>& warnings) {
  const auto& policy = runtime.spec.mlPolicy;
  if (!policy || !policy->mpi || !policy->mpi->runLauncherAsNode.value_or(false)) return;
  const auto& jobs = replicated_jobs_of(runtime);
  if (std::none_of(jobs.begin(), jobs.end(),
                   [](const ReplicatedJob& job) { return job.name == kLauncher; }))
    warnings.push_back(
        fmt::format("spec.mlPolicy.mpi.runLauncherAsNode: has no effect, because no "
                    "job is called {}; leave it out, or call the one so that starts "
                    "mpirun",
                    kLauncher));
}

}  // namespace

void warn_about_unused(const Runtime& runtime, std::vector<std::string>& warnings) {
  warn_about_launcher(runtime, warnings);
  const auto& jobset = runtime.spec.template_;
  if (!jobset) return;
  if (jobset->metadata) warn_about_metadata(*jobset->metadata, "spec.template.metadata", warnings);
  if (!jobset->spec) return;
  if (jobset->spec->suspend.value_or(false))
    warnings.push_back(
        "spec.template.spec.suspend: has no effect, because spec.suspend of the TrainJob decides; "
        "leave it out");
  const auto& jobs = jobset->spec->replicatedJobs;
  for (std::size_t i = 0; i < jobs.size() && warnings.size() < kube::kMaxWarnings; ++i)
    warn_about_counts(runtime, jobs[i], kube::join_index("spec.template.spec.replicatedJobs", i),
                      warnings);
}

void warn_about_unused(const TrainJob& job, std::vector<std::string>& warnings) {
  const auto& patches = job.spec.runtimePatches;
  for (std::size_t i = 0; i < patches.size(); ++i)
    if (const auto& changes = patches[i].trainingRuntimeSpec)
      warn_about_metadata(
          changes->get_path({"template", "metadata"}),
          kube::join_index("spec.runtimePatches", i) + ".trainingRuntimeSpec.template.metadata",
          warnings);
}

}  // namespace trainer::pipeline
