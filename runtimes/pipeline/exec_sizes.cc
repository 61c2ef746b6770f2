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

// A string that is too long, and where it is in the JobSet.
struct Long {
  std::string job;
  std::string container;
  std::string path;         // of the journal: "...containers[node].args", "...env[NAME]"
  std::string_view member;  // "command", "args" or "env"
  std::size_t index = 0;    // in the list
  std::string variable;     // its name; "" for a word
  std::size_t bytes = 0;
};

class Search {
 public:
  std::vector<Long> run(const Json& jobset) {
    for (const Json& job : jobset.get("spec").get_array("replicatedJobs")) {
      const Json& pod = job.get_path({"template", "spec", "template", "spec"});
      for (const std::string_view list : {"containers", "initContainers"})
        for (const Json& container : pod.get_array(list)) search(job, list, container);
    }
    return std::move(found_);
  }

 private:
  void search(const Json& job, std::string_view list, const Json& container) {
    for (const std::string_view member : {"command", "args"}) {
      const Json::Array& words = container.get_array(member);
      for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i].is_string() &&
            kube::exec_bytes(words[i].as_string()) > kube::kMaxExecStringBytes)
          add(job, list, container,
              {.member = member, .index = i, .bytes = kube::exec_bytes(words[i].as_string())});
    }
    const Json::Array& env = container.get_array("env");
    for (std::size_t i = 0; i < env.size(); ++i) {
      const std::string_view name = env[i].get_string("name");
      const std::size_t bytes = kube::exec_bytes(name, env[i].get_string("value"));
      if (bytes > kube::kMaxExecStringBytes)
        add(job, list, container,
            {.member = "env", .index = i, .variable = std::string(name), .bytes = bytes});
    }
  }

  void add(const Json& job, std::string_view list, const Json& container, Long one) {
    if (found_.size() == kEnough) return;
    one.job = job.get_string("name");
    one.container = container.get_string("name");
    one.path = fmt::format("spec.replicatedJobs[{}].template.spec.template.spec.{}[{}].{}", one.job,
                           list, one.container, one.member);
    if (one.member == "env") one.path = kube::join_key(one.path, one.variable);
    found_.push_back(std::move(one));
  }

  std::vector<Long> found_;
};

std::optional<std::size_t> find_name(const std::vector<Json>& env, std::string_view name) {
  const auto at = std::find_if(env.begin(), env.end(), [name](const Json& variable) {
    return variable.get_string("name") == name;
  });
  if (at == env.end()) return std::nullopt;
  return static_cast<std::size_t>(at - env.begin());
}

std::string path_in_env(std::string path, const std::vector<Json>& env, const Long& one,
                        std::string otherwise) {
  const auto index = find_name(env, one.variable);
  return index ? kube::join_index(path + ".env", *index) + ".value" : std::move(otherwise);
}

// The field of the job that a source in the journal names, else that of the runtime.
std::string field_of(const Long& one, const std::string& source, const TrainJob& job) {
  if (source == "spec.trainer.command" || source == "spec.trainer.args")
    return kube::join_index(source, one.index);
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
  // A plugin that joins words has them from the job, where it says any.
  const Trainer& trainer = trainer_of(job);
  if (source.starts_with("plugin ") && (trainer.command || trainer.args))
    return trainer.command ? "spec.trainer.command" : "spec.trainer.args";
  return "spec.runtimeRef";
}

std::string title_of(const Long& one) {
  const std::string_view word = one.member == "args" ? "argument" : "word";
  const std::string what = one.variable.empty()
                               ? fmt::format("{} {} of the command line", word, one.index + 1)
                               : fmt::format("variable {}", one.variable);
  return fmt::format("{} of container {} in job {}", what, one.container, one.job);
}

}  // namespace

kube::FieldErrors check_exec_sizes(const Built& built, const TrainJob& job, const Runtime& runtime,
                                   const PipelineOptions& options) {
  kube::FieldErrors errors;
  const std::vector<Long> found = Search().run(built.jobset);
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
    error.detail = fmt::format(
        "{}{} has {} bytes, and Linux starts no process with more than {} in one: bring the "
        "content "
        "in a file of the image, a ConfigMap or another volume, or shorten it",
        title_of(one), whose, one.bytes, kube::kMaxExecStringBytes);
    errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace trainer::pipeline
