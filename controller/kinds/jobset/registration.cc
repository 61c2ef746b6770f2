#include "controller/kinds/jobset/registration.hh"

#include <chrono>
#include <utility>

#include "controller/kinds/common/collections.hh"
#include "controller/kinds/jobset/command_hooks.hh"
#include "controller/kinds/jobset/jobset_controller.hh"
#include "controller/kinds/jobset/webhooks.hh"

namespace trainer {
namespace {

using kube::StoredObject;
using kube::Watch;
using std::chrono::milliseconds;

constexpr int kWorkers = 32;
// A reconcile of a JobSet may find that the next Jobs can start, so its debounce is short.
constexpr kube::DebounceTimes kDebounce{milliseconds(20), milliseconds(20), milliseconds(150),
                                        milliseconds(1'000)};

std::vector<Watch> watches() {
  using Self = JobSetController;
  return {
      Watch::only_read<StoredObject>(all_of(kJobSets), jobset_transform()),
      Watch::of<Self, StoredObject>(all_of(kube::kServices), kube::transform_owner,
                                    &Self::on_service),
      indexed_jobs(Watch::of<Self, JobView>(jobset_jobs(), job_transform(), &Self::on_job)),
      indexed_pods(Watch::of<Self, PodView>(jobset_pods(), pod_transform(), &Self::on_pod)),
  };
}

std::vector<kube::PolicyRule> rules() {
  return {
      {"", {"jobset.x-k8s.io"}, {"jobsets"}, {}, {"delete", "get", "list", "watch"}},
      {"", {"jobset.x-k8s.io"}, {"jobsets/status"}, {}, {"patch"}},
      {"Lets owner references block a deletion.",
       {"jobset.x-k8s.io"},
       {"jobsets/finalizers"},
       {},
       {"update"}},
      {"The Jobs of JobSets.",
       {"batch"},
       {"jobs"},
       {},
       {"create", "delete", "get", "list", "patch", "watch"}},
      {"The start time of a Job that ran before is removed when it resumes elsewhere: else its "
       "node "
       "selectors could not change.",
       {"batch"},
       {"jobs/status"},
       {},
       {"patch"}},
      {"", {""}, {"services"}, {}, {"create", "get", "list", "watch"}},
      {"", {""}, {"persistentvolumeclaims"}, {}, {"create", "get"}},
      {"", {""}, {"pods"}, {}, {"list", "watch"}},
      {"", {"scheduling.k8s.io"}, {"priorityclasses"}, {}, {"get"}},
      {"", {""}, {"events"}, {}, {"create", "patch"}},
      {"Whether the upstream JobSet controller runs.",
       {"coordination.k8s.io"},
       {"leases"},
       {"6d4f6a47.jobset.x-k8s.io"},
       {"list", "watch"}},
      {"The namespace in which that controller runs.",
       {"admissionregistration.k8s.io"},
       {"validatingwebhookconfigurations"},
       {"jobset-validating-webhook-configuration"},
       {"get"}},
  };
}

}  // namespace

KindRegistration jobset_registration(const KindOptions& options,
                                     std::shared_ptr<JobSetState> shared) {
  JobSetController::Settings settings{
      jobset_gates(options.configuration.featureGates), {options.ns}, options.jobs};
  for (const std::string& ns : options.configuration.jobsetController.upstreamNamespaces)
    settings.upstream_namespaces.insert(ns);
  KindRegistration made;
  // Dashboards for upstream's controller know this name (JobSet, pkg/controllers).
  made.controller.name = "jobset";
  made.controller.group_kind = "JobSet.jobset.x-k8s.io";
  made.controller.workers = kWorkers;
  made.controller.watches = watches();
  made.controller.debounce = kDebounce;
  made.controller.rules = rules();
  made.crds = {jobset_kind()};
  made.admission = jobset_admission(shared, settings.gates);
  add_jobset_hooks(made);
  made.controller.make = [shared = std::move(shared),
                          settings](const kube::ControllerContext& context) {
    return std::make_unique<JobSetController>(context, shared, settings);
  };
  return made;
}

}  // namespace trainer
