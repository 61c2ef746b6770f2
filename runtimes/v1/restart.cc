// A failed pod is restarted, or ends the job (pkg/controller.v1/common/pod.go, ReconcilePods).
#include <fmt/format.h>

#include <set>

#include "kube/model/saturating.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

// The exit code is this if the required container has none, for example after an eviction. It is
// upstream's number.
constexpr std::int32_t kUnknownExitCode = 0xbeef;

std::int32_t exit_code_of(const Framework& framework, const V1PodView& pod) {
  return pod.exit_code_of(framework.container).value_or(kUnknownExitCode);
}

void count_restart(V1JobContext& context, const V1PodView& pod) {
  if (!context.job.spec.runPolicy.backoffLimit || context.counted_pods.contains(pod.uid)) return;
  context.status.restarts =
      kube::saturating_add(context.status.restarts, kube::saturating_add(1, pod.restarts));
  context.status.restartedPods.push_back(pod.uid);
  // The restart is counted before the pod is deleted. Otherwise a lost answer would lose the count.
  context.plan.status_time = kube::Plan::StatusTime::kBeforeActions;
}

}  // namespace

bool is_retryable(std::int32_t exit_code) {
  return exit_code >= 128;
}

bool needs_restart(const Framework& framework, const RoleState& role, const V1PodView& pod) {
  if (pod.phase != "Failed" || pod.is_deleting || framework.keeps_failed_pods) return false;
  const std::string& policy = role.spec->restartPolicy;
  return policy == "OnFailure" || policy == "Always" ||
         (policy == "ExitCode" && is_retryable(exit_code_of(framework, pod)));
}

void restart_failed_pods(V1JobContext& context) {
  if (!context.status.restartedPods.empty()) {
    std::set<std::string_view> existing;
    for (const V1PodView* pod : context.observed.pods) existing.insert(pod->uid);
    std::erase_if(context.status.restartedPods,
                  [&existing](const std::string& uid) { return !existing.contains(uid); });
  }
  for (RoleState& role : context.roles) {
    bool is_restarting = false;
    for (const V1PodView* pod : role.pods) {
      if (pod == nullptr) continue;
      if (const auto code = pod->exit_code_of(context.framework.container))
        context.relay("Normal", "ExitedWithCode",
                      fmt::format("Pod: {}.{} exited with code {}", pod->ns, pod->name, *code));
      if (needs_restart(context.framework, role, *pod)) {
        count_restart(context, *pod);
        context.remove_pod(*pod);
        ++context.plan.counts.restarted;
        is_restarting = true;
      } else if (pod->phase == "Failed" && role.spec->restartPolicy == "ExitCode" &&
                 !pod->is_deleting && !context.framework.keeps_failed_pods) {
        std::string text = fmt::format("job \"{}\" is failing because \"{}\" replica(s) failed.",
                                       context.name(), role.name);
        context.report("Warning", context.reason_of(kFailed), text);
        context.set_condition(kFailed, true, kFailed, std::move(text));
      }
    }
    if (!is_restarting) continue;
    set_restarting(context, fmt::format("job {} is restarting because {} replica(s) failed.",
                                        context.name(), role.name));
  }
}

}  // namespace trainer::v1
