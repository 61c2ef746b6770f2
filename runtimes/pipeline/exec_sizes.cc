#include "runtimes/pipeline/exec_sizes.hh"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/exec_limits.hh"
#include "runtimes/pipeline/draft.hh"
#include "runtimes/pipeline/patches.hh"

namespace trainer::pipeline {

namespace {

using kube::Json;

constexpr std::size_t kEnough = 10;  // no one reads more of these errors

// This is one of them in the JobSet.
struct Long {
  std::string job;
  kube::LongExecString string;
  std::string path;  // the journal's path: "...containers[node].args", "...env[NAME]"
};

std::vector<Long> find_long(const Json& jobset) {
  std::vector<Long> found;
  for (const Json& job : jobset.get("spec").get_array("replicatedJobs")) {
    const std::string name(job.get_string("name"));
    for (const kube::LongExecString& one : kube::find_long_exec_strings(
             job.get_path({"template", "spec", "template", "spec"}), kEnough - found.size())) {
      std::string path = fmt::format(
          "spec.replicatedJobs[{}].template.spec.template.spec.{}[{}].{}{}{}", name, one.list,
          one.name, one.hook, one.hook.empty() ? "" : ".exec.", one.list_of_strings);
      if (!one.variable.empty()) path = kube::join_key(path, one.variable);
      found.push_back({name, one, std::move(path)});
    }
  }
  return found;
}

std::optional<std::size_t> find_name(const std::vector<Json>& env, std::string_view name) {
  const auto at = std::find_if(env.begin(), env.end(), [name](const Json& variable) {
    return variable.get_string("name") == name;
  });
  if (at == env.end()) return std::nullopt;
  return static_cast<std::size_t>(at - env.begin());
}

std::string path_in_env(std::string path, const std::vector<Json>& env, const Long& one,
                        std::string otherwise) {
  const auto index = find_name(env, one.string.variable);
  return index ? kube::join_index(path + ".env", *index) + ".value" : std::move(otherwise);
}

// Returns the field of the job that a source in the journal names, else that of the runtime.
std::string field_of(const Long& one, const std::string& source, const TrainJob& job) {
  if (source == "spec.trainer.command" || source == "spec.trainer.args")
    return kube::join_index(source, one.string.index);
  if (source == "spec.trainer.env")
    return path_in_env("spec.trainer", trainer_of(job).env, one, source);
  if (source.starts_with("spec.initializer.") && job.spec.initializer) {
    const auto& from = source.starts_with("spec.initializer.model") ? job.spec.initializer->model
                                                                    : job.spec.initializer->dataset;
    const std::string path = source.substr(0, source.find(".env"));
    return from ? path_in_env(path, from->env, one, path + ".storageUri") : path;
  }
  if (const auto patch = path_of_patch(job, source))
    return fmt::format("{}.trainingRuntimeSpec.template.{}", *patch, one.path);
  // A plugin that joins words has them from the job, if the job has any.
  const Trainer& trainer = trainer_of(job);
  if (source.starts_with("plugin ") && (trainer.command || trainer.args))
    return trainer.command ? "spec.trainer.command" : "spec.trainer.args";
  return "spec.runtimeRef";
}

}  // namespace

kube::FieldErrors check_exec_sizes(const Built& built, const TrainJob& job, const Runtime& runtime,
                                   const PipelineOptions& options) {
  kube::FieldErrors errors;
  const std::vector<Long> found = find_long(built.jobset);
  if (found.empty()) return errors;
  std::vector<Explanation> notes;
  (void)build(job, runtime, options, &notes);
  for (const Long& one : found) {
    const std::string source(source_at(notes, one.path));
    std::string field = field_of(one, source, job);
    const std::string whose =
        field != "spec.runtimeRef"
            ? ""
            : fmt::format(", which comes from {}{} \"{}\",", source.empty() ? "" : source + " and ",
                          runtime.kind, runtime.metadata.name);
    kube::FieldError error;
    error.type = kube::FieldError::Type::kTooLong;
    error.path = std::move(field);
    error.detail =
        one.string.text(fmt::format("container {} in job {}", one.string.name, one.job), whose);
    errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace trainer::pipeline
