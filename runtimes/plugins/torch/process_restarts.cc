#include "runtimes/plugins/torch/process_restarts.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtimes/pipeline/failure_policy.hh"
#include "runtimes/pipeline/reserved_env.hh"
#include "runtimes/plugins/torch/elastic.hh"
#include "runtimes/plugins/torch/launcher.hh"
#include "runtimes/plugins/torch/torchtune.hh"

namespace trainer::pipeline {

namespace {

// The Job of an attempt has a uid of its own, so agents of two attempts never meet.
constexpr std::string_view kJobUid = "metadata.labels['batch.kubernetes.io/controller-uid']";

// torchrun waits as long for the others as the static rendezvous does: pods whose images are loaded
// start minutes apart. All nodes take part, so that none waits for more of them.
constexpr std::string_view kTimes = "last_call_timeout=1,join_timeout=600,read_timeout=600";
// The nodes of an elastic job begin with fewer. Those that come within these seconds begin
// together.
constexpr std::string_view kElasticTimes = "last_call_timeout=5,join_timeout=600,read_timeout=600";

// Returns what makes the restarts impossible, with a way out; "" if nothing does.
std::string obstacle_of(const Draft& draft, const TorchPolicy& policy) {
  const auto launcher = launcher_of(draft.job, policy);
  if (launcher && *launcher == Launcher::kEnv)
    return "only torchrun restarts processes, and launcher env starts none: use launcher torchrun";
  if (torchtune::is_torchtune(draft.command))
    return "recipes of torchtune begin again from the start after a restart: leave it out, or "
           "write a command that resumes from a checkpoint";
  return {};
}

}  // namespace

std::optional<std::int32_t> process_restarts_of(const Draft& draft, const TorchPolicy& policy) {
  const std::int32_t restarts = process_restarts_asked_for(draft);
  if (const auto elastic = elastic_policy_of(policy)) {
    const auto& own = draft.job.spec.failurePolicy;
    return own && own->processRestarts ? *own->processRestarts
                                       : std::max(restarts, elastic->restarts);
  }
  if (restarts <= 0 || !obstacle_of(draft, policy).empty()) return std::nullopt;
  return restarts;
}

void inject_process_restarts(ContainerEdit& container, const Draft& draft, const std::string& host,
                             std::int32_t restarts, bool is_elastic) {
  container.env("PET_MAX_RESTARTS", std::to_string(restarts));
  container.env("PET_MONITOR_INTERVAL", "1");
  container.env("PET_RDZV_BACKEND", "c10d");
  // torchrun of index 0 keeps the store. Older ones (1.13) know themselves by their full name only.
  container.env("PET_RDZV_ENDPOINT", fmt::format("{}.{}.svc.{}:{}", host, draft.job.metadata.ns,
                                                 draft.options.cluster_domain, kTrainerPort));
  container.env_field("PET_RDZV_ID", kJobUid);
  container.env("PET_RDZV_CONF", is_elastic ? kElasticTimes : kTimes);
}

void check_process_restarts(const Draft& draft, const TorchPolicy& policy,
                            kube::FieldErrors& errors) {
  if (process_restarts_of(draft, policy)) {
    return refuse_reserved_env(
        draft.job,
        {"PET_MAX_RESTARTS", "PET_MONITOR_INTERVAL", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT",
         "PET_RDZV_ID", "PET_RDZV_CONF"},
        elastic_policy_of(policy) ? "elasticPolicy of the runtime sets them: leave the variable out"
                                  : "processRestarts sets them: leave the variable out, or set "
                                    "spec.failurePolicy.processRestarts to 0",
        errors);
  }
  const auto& own = draft.job.spec.failurePolicy;
  if (!own || own->processRestarts.value_or(0) <= 0) return;
  errors.push_back(kube::invalid(std::string(kProcessRestartsPath), *own->processRestarts,
                                 obstacle_of(draft, policy)));
}

void warn_about_process_restarts(const Draft& draft, const TorchPolicy& policy,
                                 std::vector<std::string>& warnings) {
  const std::int32_t asked = process_restarts_asked_for(draft);
  if (asked <= 0) return;
  const auto& own = draft.job.spec.failurePolicy;
  const std::string path = own && own->processRestarts
                               ? std::string(kProcessRestartsPath)
                               : fmt::format("spec.runtimeRef: processRestarts of runtime \"{}\"",
                                             draft.job.spec.runtimeRef.name);
  if (const std::string obstacle = obstacle_of(draft, policy); !obstacle.empty())
    return warnings.push_back(fmt::format("{} has no effect: {}", path, obstacle));
  const auto launcher = launcher_of(draft.job, policy);
  const Starts starts = what_starts(command_line_of(draft));
  if (starts == Starts::kProgram ||
      (starts == Starts::kPython && launcher && *launcher == Launcher::kNone))
    warnings.push_back(
        fmt::format("{} has no effect on a command that does not start torchrun: annotate the "
                    "TrainJob with {}: torchrun",
                    path, kLauncherAnnotation));
  const auto job = draft.find_ancestor(kTrainerStep);
  if (job && draft.pod_template(*job).get("spec").get_bool("hostNetwork"))
    warnings.push_back(
        fmt::format("{}: pods with hostNetwork have the name of their machine, by which older "
                    "versions of torch (1.13) do not find who keeps the rendezvous: leave one of "
                    "the two out, unless your version resolves names",
                    path));
}

}  // namespace trainer::pipeline
