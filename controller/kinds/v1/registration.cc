#include "controller/kinds/v1/registration.hh"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "controller/kinds/v1/command_hooks.hh"
#include "controller/kinds/v1/job_controller.hh"
#include "controller/kinds/v1/webhooks.hh"
#include "kube/model/resources.hh"
#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/v1/plan.hh"

namespace trainer::v1 {
namespace {

using kube::StoredObject;
using kube::Watch;
using std::chrono::milliseconds;

constexpr int kWorkers = 32;
// There are no Jobs between a V1 job and its pods, so its counters are those of its pods.
constexpr kube::DebounceTimes kDebounce{milliseconds(20), milliseconds(100), milliseconds(150),
                                        milliseconds(1'000)};

std::vector<Watch> watches(const Framework& framework, const Settings& settings) {
  using Self = JobController;
  std::vector<Watch> watches{
      Watch::only_read<StoredObject>(all_of(framework.resource),
                                     framework.shares_crd
                                         ? versioned_transform(framework.resource)
                                         : kube::StoredObjectTransform(framework.resource)),
      indexed_v1_pods(Watch::of<Self, V1PodView>(v1_pods(), v1_pod_transform(), &Self::on_pod))};
  if (framework.has_services) {
    watches.push_back(indexed_by_controller(
        Watch::of<Self, StoredObject>(v1_services(), kube::transform_owner, &Self::on_service)));
  }
  if (const kube::Resource* groups = pod_groups_of(settings)) {
    watches.push_back(Watch::of<Self, StoredObject>(
        all_of(*groups), kube::StoredObjectTransform(*groups), &Self::on_child));
  }
  return watches;
}

// Returns the rule for an object that a job owns and that is read by its name. Only autoscalers are
// deleted before their job, and a ServiceAccount is never changed.
kube::PolicyRule dependent_rule(const kube::Resource& resource) {
  std::vector<std::string> verbs{"create", "get"};
  if (resource.group == "autoscaling") verbs.insert(verbs.begin() + 1, "delete");
  if (resource.plural != "serviceaccounts") verbs.push_back("patch");
  return {"", {resource.group}, {resource.plural}, {}, std::move(verbs)};
}

// Some kinds have jobs that pass rights on. Each has a ClusterRole of its own, which is bound only
// if the kind is reconciled: with these rights one can run commands in pods of others.
std::string option_of(const Framework& framework) {
  const auto& all = framework.dependents;
  const bool gives_rights = std::find(all.begin(), all.end(), kube::kRoles) != all.end();
  return gives_rights ? fmt::format("{}-{}", kOption, framework.singular) : std::string();
}

std::vector<kube::PolicyRule> rules(const Framework& framework) {
  const std::string& jobs = framework.resource.plural;
  const std::string& group = framework.resource.group;
  const std::string own = option_of(framework);
  std::vector<kube::PolicyRule> rules{
      {"", {group}, {jobs}, {}, {"delete", "get", "list", "watch"}, own},
      {"", {group}, {jobs + "/status"}, {}, {"patch"}, own},
      {"Marks finished jobs (marksFinishedJobs).",
       {group},
       {jobs},
       {},
       {"patch"},
       std::string(kOption) + "-finished-marker"},
      {"", {group}, {jobs + "/finalizers"}, {}, {"update"}, own},
      {"The pods of a job. A patch ends a failed job's pod that waits for its next restart.",
       {""},
       {"pods"},
       {},
       {"create", "delete", "get", "list", "patch", "watch"}},
      {"", {""}, {"services"}, {}, {"create", "delete", "get", "list", "watch"}},
      {"", {""}, {"events"}, {}, {"create", "patch"}},
      {"With a gang scheduler.",
       {gang::volcano().pod_groups.group, gang::coscheduling().pod_groups.group},
       {"podgroups"},
       {},
       {"create", "delete", "get", "list", "patch", "watch"}}};
  for (const kube::Resource& each : framework.dependents) {
    rules.push_back(dependent_rule(each));
    rules.back().option = own;
    if (each == kube::kRoles)
      rules.push_back(
          {"Who gives a right away must hold it.", {""}, {"pods/exec"}, {}, {"create"}, own});
  }
  return rules;
}

}  // namespace

KindRegistration job_registration(const KindOptions& options, const Framework& framework) {
  Settings settings = options.configuration.trainingOperator.settings;
  settings.marks_finished = options.configuration.marksFinishedJobs;
  KindRegistration made;
  made.option = kOption;
  // Users know this name from events, and from the label operator-name of pods.
  made.controller.name = std::string(framework.singular) + "-controller";
  made.controller.component = made.controller.name;
  made.controller.group_kind = framework.resource.kind + "." + framework.resource.group;
  made.controller.workers = kWorkers;
  made.controller.watches = watches(framework, settings);
  made.controller.debounce = kDebounce;
  made.controller.rules = rules(framework);
  made.crds = {api_kind(framework)};
  if (framework.has_webhook) made.admission = job_admission(framework, settings);
  add_job_hooks(made, framework);
  made.controller.make = [&framework, settings = std::move(settings),
                          jobs = options.jobs](const kube::ControllerContext& context) {
    return std::make_unique<JobController>(context, framework, settings, jobs);
  };
  return made;
}

}  // namespace trainer::v1
