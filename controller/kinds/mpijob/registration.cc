#include "controller/kinds/mpijob/registration.hh"

#include <chrono>
#include <memory>
#include <utility>

#include "controller/kinds/mpijob/children.hh"
#include "controller/kinds/mpijob/command_hooks.hh"
#include "controller/kinds/mpijob/mpijob_controller.hh"
#include "kube/model/resources.hh"
#include "runtimes/admission/mpijob.hh"
#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::mpijob {
namespace {

using kube::Result;
using kube::StoredObject;
using kube::Task;
using kube::Watch;
using std::chrono::milliseconds;

constexpr int kWorkers = 32;
constexpr kube::DebounceTimes kDebounce{milliseconds(20), milliseconds(100), milliseconds(150),
                                        milliseconds(1'000)};
constexpr const char* kStampPath = "/mutate-kubeflow-org-v1-mpijob";
constexpr const char* kReviewPath = "/validate-kubeflow-org-v2beta1-mpijob";

std::vector<Watch> watches(const MPISettings& settings) {
  using Self = MPIJobController;
  std::vector<Watch> watches{
      Watch::only_read<StoredObject>(all_of(kMPIJobs), versioned_transform(kMPIJobs)),
      indexed_v1_pods(
          Watch::of<Self, v1::V1PodView>(v1_pods(), v1_pod_transform(), &Self::on_pod))};
  for (const kube::Resource* each :
       {&kube::kJobs, &kube::kServices, &kube::kConfigMaps, &kube::kSecrets})
    watches.push_back(
        Watch::of<Self, StoredObject>(labelled(*each), child_transform(*each), &Self::on_object));
  if (const kube::Resource* groups = pod_groups_of(settings))
    watches.push_back(Watch::of<Self, StoredObject>(
        all_of(*groups), kube::StoredObjectTransform(*groups), &Self::on_object));
  return watches;
}

std::vector<kube::PolicyRule> rules() {
  const auto own = [](std::string comment, std::vector<std::string> groups,
                      std::vector<std::string> resources, std::vector<std::string> verbs) {
    return kube::PolicyRule{
        std::move(comment), std::move(groups), std::move(resources), {}, std::move(verbs)};
  };
  const std::string& group = kMPIJobs.group;
  const std::string& jobs = kMPIJobs.plural;
  std::vector<kube::PolicyRule> rules{
      own("", {group}, {jobs}, {"get", "list", "watch"}),
      own("", {group}, {jobs + "/status"}, {"patch"}),
      own("", {group}, {jobs + "/finalizers"}, {"update"}),
      own("The launchers.", {"batch"}, {"jobs"}, {"create", "get", "list", "patch", "watch"}),
      own("The start time of a launcher that ran before is removed when it resumes: else its node "
          "selectors could not change.",
          {"batch"}, {"jobs/status"}, {"patch"}),
      own("The workers.", {""}, {"pods"}, {"create", "delete", "get", "list", "watch"}),
      own("Host names, hostfiles and SSH keys.", {""}, {"services", "configmaps", "secrets"},
          {"create", "get", "list", "patch", "watch"}),
      own("", {""}, {"events"}, {"create", "patch"}),
      own("With a gang scheduler.",
          {gang::volcano().pod_groups.group, gang::coscheduling().pod_groups.group}, {"podgroups"},
          {"create", "delete", "get", "list", "patch", "watch"}),
      own("With a gang scheduler: which role has the lower priority.", {"scheduling.k8s.io"},
          {"priorityclasses"}, {"get"}),
      own("Whether mpi-operator runs.", {"coordination.k8s.io"}, {"leases"}, {"list", "watch"})};
  rules.back().names = {"mpi-operator"};
  return rules;
}

Task<Result<AdmissionAnswer>> stamp(AdmissionRequest request) {
  co_return stamp_mpijob(request);
}

Task<Result<AdmissionAnswer>> review(AdmissionRequest request,
                                     std::shared_ptr<const MPISettings> settings) {
  co_return review_mpijob(request, *settings);
}

// No job is refused: without an answer it is created as it is.
Webhook optional_webhook(std::string_view version) {
  Webhook webhook;
  webhook.resource = kMPIJobs;
  webhook.resource.version = version;
  webhook.is_for_updates = false;
  webhook.is_exact = true;
  webhook.failure_policy = "Ignore";
  webhook.timeout_seconds = 2;
  return webhook;
}

// A webhook writes the version into new jobs of v1, which another controller has: clients of
// v2beta1, such as Kueue, may write them later. created_version() finds most versions without it.
// Another one warns about new jobs of v2beta1.
AdmissionRegistration admission(const MPISettings& settings) {
  Webhook stamps = optional_webhook("v1");
  stamps.configuration = "defaulter.mpijob.trainer.kubeflow.org";
  stamps.is_mutating = true;
  stamps.name = "version.mpijob.trainer.kubeflow.org";
  stamps.path = kStampPath;
  Webhook warns = optional_webhook(kMPIJobs.version);
  warns.configuration = "validator.mpijob.trainer.kubeflow.org";
  warns.name = "warnings.mpijob.trainer.kubeflow.org";
  warns.path = kReviewPath;
  const auto kept = std::make_shared<const MPISettings>(settings);
  AdmissionRegistration made;
  made.handlers = {{kStampPath, [](AdmissionRequest request,
                                   AdmissionReader&) { return stamp(std::move(request)); }},
                   {kReviewPath, [kept](AdmissionRequest request, AdmissionReader&) {
                      return review(std::move(request), kept);
                    }}};
  made.webhooks = {std::move(stamps), std::move(warns)};
  return made;
}

// The CRD stores v1, and serves it where V1 jobs are installed.
ApiKind mpijob_kind(const v1::Framework& framework) {
  ApiKind kind = v1::api_kind(framework);
  kind.versions.front().is_served = false;
  kind.versions.push_back(crd_version());
  return kind;
}

}  // namespace

KindRegistration mpijob_registration(const KindOptions& options) {
  const Configuration::MPIOperator& configured = options.configuration.mpiOperator;
  MPIJobController::Options made_with{
      configured.settings, options.jobs, {options.ns}, !options.configuration.namespaced};
  for (const std::string& ns : configured.upstreamNamespaces)
    made_with.upstream_namespaces.insert(ns);
  const v1::Framework& other = *v1::find_framework("mpijob");
  KindRegistration made;
  made.option = kOption;
  made.controller.name = "mpi-job-controller";  // users know it from mpi-operator's events
  made.controller.component = made.controller.name;
  made.controller.group_kind = kMPIJobs.kind + "." + kMPIJobs.group;
  made.controller.workers = kWorkers;
  made.controller.watches = watches(configured.settings);
  made.controller.debounce = kDebounce;
  made.controller.rules = rules();
  made.crds = {mpijob_kind(other)};
  made.admission = admission(configured.settings);
  add_mpijob_hooks(made);
  made.controller.make = [made_with =
                              std::move(made_with)](const kube::ControllerContext& context) {
    return std::make_unique<MPIJobController>(context, made_with);
  };
  return made;
}

}  // namespace trainer::mpijob
