#include "controller/cli/run_job.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/names.hh"
#include "runtimes/plugins/code/code.hh"
#include "runtimes/plugins/torch/launcher.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;

constexpr const char* kTorchRuntime = "torch-distributed";
constexpr const char* kGpu = "nvidia.com/gpu";

std::string_view file_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Returns whether it has no policy of a framework: its nodes get no variables to find each other.
bool is_plain(const Json& runtime) {
  const auto& policy = runtime.get("spec").get_object("mlPolicy");
  return std::ranges::all_of(policy, [](const auto& member) { return member.first == "numNodes"; });
}

std::string counted(std::int32_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

Json trainer_of_flags(const JobFlags& flags) {
  Json trainer =
      Json::object({{"command", Json::Array(flags.command.begin(), flags.command.end())}});
  if (flags.nodes) trainer.set("numNodes", *flags.nodes);
  if (flags.procs) trainer.set("numProcPerNode", *flags.procs);
  if (flags.gpus) trainer["resourcesPerNode"]["limits"].set(kGpu, std::to_string(*flags.gpus));
  for (const std::string& variable : flags.env) {
    const std::size_t equals = variable.find('=');
    trainer["env"].push_back(Json::object(
        {{"name", variable.substr(0, equals)}, {"value", variable.substr(equals + 1)}}));
  }
  return trainer;
}

Result<void> check_env(const std::vector<std::string>& env) {
  std::vector<std::string> names;
  for (const std::string& variable : env) {
    const std::size_t equals = variable.find('=');
    if (equals == 0 || equals == variable.npos)
      return kube::fail(ErrorCode::kInvalid, "--env {}: write NAME=VALUE", variable);
    names.push_back(variable.substr(0, equals));
    if (std::ranges::count(names, names.back()) > 1)
      return kube::fail(ErrorCode::kInvalid, "--env {}: {} is there twice: leave one out", variable,
                        names.back());
  }
  return {};
}

}  // namespace

Result<void> check_job_flags(const JobFlags& flags) {
  if (flags.command.empty() || flags.command[0].empty())
    return kube::fail(ErrorCode::kInvalid,
                      "the command is missing: write it behind --, such as `-- python train.py`");
  if (const std::string problem = kube::check_dns1035_label(flags.name);
      !flags.name.empty() && !problem.empty())
    return kube::fail(ErrorCode::kInvalid,
                      "--name {}: {}: write small letters, digits and \"-\", a letter first",
                      flags.name, problem);
  if (const std::string problem = kube::check_label_value(flags.queue); !problem.empty())
    return kube::fail(ErrorCode::kInvalid, "--queue {}: {}: name a LocalQueue of the namespace",
                      flags.queue, problem);
  const std::size_t slash = flags.runtime.find('/');
  const std::string kind = flags.runtime.substr(0, slash);
  const bool has_kind = slash != flags.runtime.npos;
  if (has_kind && kind != kTrainingRuntimes.kind && kind != kClusterTrainingRuntimes.kind)
    return kube::fail(ErrorCode::kInvalid,
                      "--runtime {}: write NAME, or TrainingRuntime/NAME for one of the namespace",
                      flags.runtime);
  if (const std::string problem = kube::check_dns1123_subdomain(named_runtime(flags).name);
      !flags.runtime.empty() && !problem.empty())
    return kube::fail(ErrorCode::kInvalid, "--runtime {}: {}: name a ClusterTrainingRuntime",
                      flags.runtime, problem);
  return check_env(flags.env);
}

RuntimeChoice named_runtime(const JobFlags& flags) {
  const std::size_t slash = flags.runtime.find('/');
  if (slash == flags.runtime.npos) return {kClusterTrainingRuntimes, flags.runtime};
  const bool is_namespaced = flags.runtime.substr(0, slash) == kTrainingRuntimes.kind;
  return {is_namespaced ? kTrainingRuntimes : kClusterTrainingRuntimes,
          flags.runtime.substr(slash + 1)};
}

bool is_python_command(const std::vector<std::string>& command) {
  const std::string_view program = file_of(command[0]);
  return program == "torchrun" ||
         pipeline::what_starts({command, {}}) == pipeline::Starts::kPython ||
         program.substr(0, program.find_first_of("0123456789.")) == "python";
}

Result<std::string> choose_runtime(const std::vector<std::string>& command,
                                   const std::vector<Json>& all) {
  std::vector<std::string> names;
  std::vector<std::string> plain;
  for (const Json& runtime : all) {
    names.push_back(kube::ObjectMeta::of(runtime).name);
    if (is_plain(runtime)) plain.push_back(names.back());
  }
  std::ranges::sort(names);
  const bool is_python = is_python_command(command);
  if (is_python && std::ranges::find(names, kTorchRuntime) != names.end()) return kTorchRuntime;
  if (!is_python && plain.size() == 1) return plain[0];
  const std::string missing =
      is_python ? fmt::format("the cluster has no {}", kTorchRuntime)
      : plain.empty()
          ? fmt::format("`{}` needs one without a framework, and none is there", command[0])
          : fmt::format("{} are without a framework", fmt::join(plain, ", "));
  return kube::fail(ErrorCode::kNotFound,
                    "--runtime is missing, and none is chosen: {}: name one of the cluster's "
                    "ClusterTrainingRuntimes: {}",
                    missing,
                    names.empty() ? "there are none" : fmt::format("{}", fmt::join(names, ", ")));
}

Json make_job(const JobFlags& flags, const JobParts& parts) {
  Json metadata = Json::object({{"name", parts.key.name}});
  if (!parts.key.ns.empty()) metadata.set("namespace", parts.key.ns);
  if (!flags.queue.empty()) metadata["labels"].set(kQueueLabel, flags.queue);
  Json annotations = Json::object();
  // Otherwise each node would train alone.
  if (parts.is_torch && pipeline::what_starts({flags.command, {}}) == pipeline::Starts::kPython)
    annotations.set(pipeline::kLauncherAnnotation, "torchrun");
  if (!parts.code_names.empty())
    annotations.set(pipeline::kCodeKey, fmt::format("{}", fmt::join(parts.code_names, ",")));
  if (parts.is_watched) annotations.set(pipeline::kCodeWatchKey, "true");
  if (!parts.working_directory.empty())
    annotations.set(pipeline::kWorkingDirKey, parts.working_directory);
  if (!annotations.empty()) metadata.set("annotations", std::move(annotations));
  Json runtime = Json::object({{"name", parts.runtime.name}});
  if (parts.runtime.resource == kTrainingRuntimes) runtime.set("kind", kTrainingRuntimes.kind);
  return Json::object({{"apiVersion", kTrainJobs.api_version()},
                       {"kind", kTrainJobs.kind},
                       {"metadata", std::move(metadata)},
                       {"spec", Json::object({{"runtimeRef", std::move(runtime)},
                                              {"trainer", trainer_of_flags(flags)}})}});
}

std::string describe_job(const JobFlags& flags) {
  std::string text = flags.nodes ? counted(*flags.nodes, "node", "nodes") : "nodes of the runtime";
  if (flags.procs) text += ", " + counted(*flags.procs, "process", "processes") + " a node";
  if (flags.gpus) text += ", " + counted(*flags.gpus, "GPU", "GPUs") + " a node";
  if (!flags.queue.empty()) text += fmt::format(", queue {}", flags.queue);
  return fmt::format("{}: {}", text, fmt::join(flags.command, " "));
}

int exit_status_of(const Json& job) {
  if (kube::has_condition(job, "Complete")) return 0;
  const Json& failure = job.get("status").get("firstFailure");
  const std::int64_t signal = failure.get_int("signal");
  const std::int64_t code = signal > 0 ? 128 + signal : failure.get_int("exitCode");
  return code > 0 && code < 256 ? static_cast<int>(code) : 1;
}

}  // namespace trainer
