// The launcher's Job (mpi-operator, pkg/controller: newLauncherJob, syncHandler).
#include <algorithm>
#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/resources.hh"
#include "runtimes/mpijob/context.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;

// A later change of readiness has no effect: the launcher is there.
bool may_start(const MPIJobContext& context) {
  if (context.is_suspended() || context.job.spec.launcherCreationPolicy == "AtStartup") return true;
  return std::ranges::all_of(context.workers, [](const v1::V1PodView* pod) {
    return pod && pod->phase == "Running" && pod->is_ready;
  });
}

// The parts of a pod template that a queue edits. Keys of labels and annotations that the template
// lacks stay; so it is in mpi-operator.
Json scheduling_change(const Json& stored, const Json& desired) {
  Json change = Json::object();
  for (const char* member : {"labels", "annotations"})
    if (const Json* keys = desired.get("metadata").find(member))
      change["metadata"].set(member, *keys);
  for (const char* member : {"nodeSelector", "tolerations", "schedulingGates"}) {
    Json difference =
        kube::merge_diff(stored.get("spec").get(member), desired.get("spec").get(member));
    const bool is_absent = !desired.get("spec").find(member) && !stored.get("spec").find(member);
    if (!is_absent && !difference.is_null()) change["spec"].set(member, std::move(difference));
    if (!desired.get("spec").find(member) && stored.get("spec").find(member))
      change["spec"].set(member, nullptr);
  }
  return change;
}

void resume(MPIJobContext& context, const Json& launcher) {
  const std::string name = launcher_name(context.name());
  // The API server takes a change of the template only from a Job that has not begun.
  if (launcher.get("status").find("startTime"))
    context.patch(kube::kJobs, name,
                  Json::object({{"status", Json::object({{"startTime", nullptr}})}}), kLauncherJob,
                  "status");
  Json spec = Json::object({{"suspend", false}});
  Json change = scheduling_change(launcher.get("spec").get("template"),
                                  make_launcher_template(context.job, context.observed.settings));
  if (!change.empty()) spec.set("template", std::move(change));
  context.patch(kube::kJobs, name, Json::object({{"spec", std::move(spec)}}), kResume);
}

}  // namespace

Json make_launcher(const v1::V1Job& job, const MPISettings& settings) {
  const v1::RunPolicy& policy = job.spec.runPolicy;
  Json spec = Json::object({{"podReplacementPolicy", "Failed"}});
  if (policy.backoffLimit) spec.set("backoffLimit", *policy.backoffLimit);
  if (policy.activeDeadlineSeconds)
    spec.set("activeDeadlineSeconds", *policy.activeDeadlineSeconds);
  if (policy.ttlSecondsAfterFinished)
    spec.set("ttlSecondsAfterFinished", *policy.ttlSecondsAfterFinished);
  if (job.is_suspended()) spec.set("suspend", true);
  spec.set("template", make_launcher_template(job, settings));
  return Json::object(
      {{"metadata", Json::object({{"labels", Json::object({{"app", job.metadata.name}})}})},
       {"spec", std::move(spec)}});
}

const Json* find_end(const MPIJobContext& context, std::string_view type) {
  if (!context.observed.launcher) return nullptr;
  const auto& all = context.observed.launcher->get("status").get_array("conditions");
  const auto found = std::ranges::find_if(all, [type](const Json& one) {
    return one.get_string("type") == type && one.get_string("status") == "True";
  });
  return found == all.end() ? nullptr : &*found;
}

bool is_launcher_over(const MPIJobContext& context) {
  return find_end(context, "Complete") || find_end(context, "Failed");
}

void sync_launcher(MPIJobContext& context) {
  const auto& launcher = context.observed.launcher;
  if (!launcher) {
    if (!may_start(context)) return;
    const Json& spec = find_role(context.job, kLauncher)->template_.get("spec");
    if (!spec.get_string("restartPolicy").empty())
      context.relay("Warning", "SetPodTemplateRestartPolicy",
                    "Restart policy in pod template overridden by restart policy in replica spec");
    return context.create(kube::kJobs, launcher_name(context.name()),
                          make_launcher(context.job, context.observed.settings), kLauncherJob);
  }
  const bool was_suspended = launcher->get("spec").get_bool("suspend");
  if (was_suspended == context.is_suspended()) return;
  if (was_suspended) return resume(context, *launcher);
  context.patch(kube::kJobs, launcher_name(context.name()),
                Json::object({{"spec", Json::object({{"suspend", true}})}}), kLauncherJob);
}

}  // namespace trainer::mpijob
