#include "controller/kinds/placement/webhooks.hh"

#include <string>
#include <utility>

#include "controller/kinds/placement/pod_handler.hh"
#include "kube/model/resources.hh"
#include "runtimes/jobset/names.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

constexpr const char* kMutate = "/mutate--v1-pod";
constexpr const char* kValidate = "/validate--v1-pod";

constexpr std::string_view kIsExclusive =
    "has(object.metadata.annotations) && "
    "'alpha.jobset.sigs.k8s.io/exclusive-topology' in object.metadata.annotations && "
    "!('alpha.jobset.sigs.k8s.io/node-selector' in object.metadata.annotations)";
constexpr std::string_view kIsFollower =
    "!('batch.kubernetes.io/job-completion-index' in object.metadata.annotations) || "
    "object.metadata.annotations['batch.kubernetes.io/job-completion-index'] != '0'";
constexpr std::string_view kIsOther =
    "has(object.metadata.annotations) && has(object.spec.priority) && "
    "!('alpha.jobset.sigs.k8s.io/exclusive-topology' in object.metadata.annotations) && "
    "!('alpha.jobset.sigs.k8s.io/node-selector' in object.metadata.annotations)";

Webhook webhook(bool is_mutating, std::string name, std::vector<MatchCondition> conditions) {
  Webhook made;
  made.configuration = kPodWebhooks;
  made.is_mutating = is_mutating;
  made.name = std::move(name);
  made.path = is_mutating ? kMutate : kValidate;
  made.resource = kube::kPods;
  made.is_for_updates = false;
  made.skips_deletion = false;  // only creates are sent
  made.conditions = std::move(conditions);
  Json selector = Json::object({{"key", jobset::kJobSetNameKey}, {"operator", "Exists"}});
  made.object_selector = Json::object({{"matchExpressions", Json::array({std::move(selector)})}});
  return made;
}

Webhook labeler() {
  Webhook made =
      webhook(true, "labeler.pods.jobset.trainer.kubeflow.org", {{"of-another-jobset", kIsOther}});
  made.failure_policy = "Ignore";
  made.timeout_seconds = 2;
  return made;
}

Task<Result<AdmissionAnswer>> mutate(AdmissionRequest request, AdmissionReader& reader) {
  PodHandler pods(reader.client());
  co_return co_await pods.mutate(std::move(request));
}

Task<Result<AdmissionAnswer>> validate(AdmissionRequest request, AdmissionReader& reader) {
  PodHandler pods(reader.client());
  co_return co_await pods.validate(std::move(request));
}

}  // namespace

AdmissionRegistration placement_admission(std::shared_ptr<const JobSetState> shared,
                                          bool is_published) {
  // If another controller manages JobSets, its webhooks place their Pods.
  const auto is_active = [shared] {
    return shared->ownership.mode() == JobSetControllerMode::kOwn;
  };
  AdmissionRegistration made;
  made.webhooks = {
      webhook(true, "placer.pods.jobset.trainer.kubeflow.org",
              {{"exclusively-placed", kIsExclusive}}),
      labeler(),
      webhook(false, "validator.pods.jobset.trainer.kubeflow.org",
              {{"exclusively-placed", kIsExclusive}, {"follower", kIsFollower}}),
  };
  made.handlers = {{kMutate, mutate, is_active}, {kValidate, validate, is_active}};
  made.is_published = is_published;
  return made;
}

}  // namespace trainer
