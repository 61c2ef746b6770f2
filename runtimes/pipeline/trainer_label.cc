#include "runtimes/pipeline/trainer_label.hh"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

namespace {

std::string_view variables_of(const MlPolicy& policy, const Plugins& plugins) {
  for (const auto& plugin : plugins)
    if (const std::string_view found = plugin->variables_of_nodes(policy); !found.empty())
      return found;
  return {};
}

// Returns the job that should train: by its name, else by that of its container, else the first one
// that is no initializer.
std::optional<std::size_t> find_unlabelled(const std::vector<ReplicatedJob>& jobs) {
  const auto find = [&jobs](const auto& is_meant) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (ancestor_of(jobs[i]).empty() && is_meant(jobs[i])) return i;
    return std::nullopt;
  };
  if (const auto node = find([](const ReplicatedJob& job) { return job.name == kNode; }))
    return node;
  if (const auto node = find([](const ReplicatedJob& job) {
        return kube::find_container(job.template_.get_path({"spec", "template"}), kNode) != nullptr;
      }))
    return node;
  return find([](const ReplicatedJob&) { return true; });
}

std::string text_without_label(const ReplicatedJob& job, const MlPolicy& policy,
                               std::string_view variables) {
  std::string effect;
  if (!variables.empty())
    effect = fmt::format("its pods get no {} variables, and each trains alone", variables);
  if (policy.numNodes.value_or(1) > 1)
    effect +=
        fmt::format("{}mlPolicy.numNodes does not count its pods", effect.empty() ? "" : ", and ");
  if (effect.empty()) return {};
  return fmt::format(
      "job \"{}\" has no label {}: {}, so {}; add the label to the job's template, and call the "
      "container that trains {}",
      job.name, kAncestorLabel, kTrainerStep, effect, kNode);
}

}  // namespace

std::vector<LabelWarning> warn_about_trainer_label(const std::vector<ReplicatedJob>& jobs,
                                                   const MlPolicy* policy, const Plugins& plugins) {
  std::vector<LabelWarning> warnings;
  // MPI finds its jobs by their names.
  if (policy == nullptr || policy->mpi) return warnings;
  const std::string_view variables = variables_of(*policy, plugins);
  const auto is_trainer = [](const ReplicatedJob& job) { return ancestor_of(job) == kTrainerStep; };
  const auto first = std::find_if(jobs.begin(), jobs.end(), is_trainer);
  if (first == jobs.end()) {
    const auto meant = find_unlabelled(jobs);
    std::string text = meant ? text_without_label(jobs[*meant], *policy, variables) : "";
    if (!text.empty()) warnings.push_back({*meant, std::move(text)});
    return warnings;
  }
  if (variables.empty()) return warnings;
  const auto second = std::find_if(first + 1, jobs.end(), is_trainer);
  if (second != jobs.end())
    warnings.push_back(
        {static_cast<std::size_t>(second - jobs.begin()),
         fmt::format(
             "job \"{}\" has the label {}: {}, which job \"{}\" before it has, too: its pods "
             "get no {} variables, and each trains alone; leave the label out of one of "
             "them",
             second->name, kAncestorLabel, kTrainerStep, first->name, variables)});
  return warnings;
}

std::string text_for_runtime(const LabelWarning& warning) {
  return fmt::format("{}.template.metadata.labels: {}",
                     kube::join_index("spec.template.spec.replicatedJobs", warning.job),
                     warning.text);
}

}  // namespace trainer::pipeline
