#include "controller/kinds/trainjob/webhooks.hh"

#include <memory>
#include <string>
#include <utility>

#include "controller/kinds/common/admission_facts.hh"
#include "kube/client/yield.hh"
#include "kube/model/digest.hh"
#include "kube/model/resources.hh"
#include "runtimes/admission/trainjob_review.hh"
#include "runtimes/trainjob/known_objects.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

constexpr const char* kDefaulter = "defaulter.trainer.kubeflow.org";
constexpr const char* kValidator = "validator.trainer.kubeflow.org";
constexpr const char* kMutateJob = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob";
constexpr const char* kMutateRuntime = "/mutate-trainer-kubeflow-org-v1alpha1-trainingruntime";
constexpr const char* kMutateClusterRuntime =
    "/mutate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime";
constexpr const char* kValidateJob = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
constexpr const char* kValidateRuntime = "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime";
constexpr const char* kValidateClusterRuntime =
    "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime";

// mutate_trainjob() changes a new TrainJob only where it has patches (it sets their time) or fields
// of older versions (it converts them). Most jobs have neither and need no request. The schema is
// checked later, so values may have any type here, and an expression with an error would refuse the
// request without a reason.
constexpr std::string_view kHasPatchesOrLegacyFields =
    "request.operation != 'CREATE' || has(object.spec) && type(object.spec) == map && "
    "(['runtimePatches', 'podTemplateOverrides', 'podSpecOverrides', 'labels', 'annotations']"
    ".exists(name, name in object.spec) || "
    "has(object.spec.trainer) && type(object.spec.trainer) == map && "
    "has(object.spec.trainer.numProcPerNode) && "
    "type(object.spec.trainer.numProcPerNode) == string)";

// Runtimes may be installed together with the controller, before it serves webhooks.
Json unless_disabled() {
  Json selector = Json::object({{"key", "trainer.kubeflow.org/webhook-validation"},
                                {"operator", "NotIn"},
                                {"values", Json::array({"disabled"})}});
  return Json::object({{"matchExpressions", Json::array({std::move(selector)})}});
}

bool changes_patches(const AdmissionRequest& request) {
  const Json* before = request.old_object.find_path({"spec", "runtimePatches"});
  const Json* after = request.object.find_path({"spec", "runtimePatches"});
  const bool is_empty =
      (before == nullptr || before->empty()) && (after == nullptr || after->empty());
  return !is_empty && (before == nullptr || after == nullptr || *before != *after);
}

// Returns the text of the job's own snapshot; nullptr if the ConfigMap is not that snapshot.
std::shared_ptr<const std::string> text_of_snapshot(const Json& config_map, const Json& job) {
  const auto meta = kube::ObjectMeta::of(config_map);
  const kube::OwnerReference* owner = meta.controller();
  const Json* text = config_map.find_path({"data", "runtime"});
  const Json* status = job.find("status");
  const std::string_view hash = status == nullptr ? "" : status->get_string("runtimeSnapshotHash");
  const bool is_own = owner != nullptr && owner->uid == kube::ObjectMeta::of(job).uid &&
                      text != nullptr && text->is_string() &&
                      (hash.empty() || hash == kube::sha256_hex(text->as_string()));
  return is_own ? std::make_shared<const std::string>(text->as_string()) : nullptr;
}

// Reads what the rules for updates also need: the snapshot, and whether the pods still run.
Task<Result<void>> read_state_of_job(AdmissionReader& reader, const AdmissionRequest& request,
                                     AdmissionFacts& facts) {
  const auto meta = kube::ObjectMeta::of(request.old_object);
  kube::ObjectKey snapshot_key = meta.key();
  snapshot_key.name = snapshot_name(meta.name);
  const auto snapshot = co_await reader.read(kube::kConfigMaps, std::move(snapshot_key));
  if (!snapshot) co_return tl::unexpected(snapshot.error());
  if (*snapshot) facts.snapshot = text_of_snapshot(**snapshot, request.old_object);
  if (changes_patches(request)) {
    auto jobset = co_await reader.read(kJobSets, meta.key());
    if (!jobset) co_return tl::unexpected(jobset.error());
    facts.jobset = std::move(*jobset);
  }
  co_return Result<void>();
}

using Options = std::shared_ptr<const PipelineOptions>;

Task<Result<AdmissionAnswer>> validate(AdmissionRequest request, AdmissionReader& reader,
                                       Options options, jobset::Gates gates) {
  auto facts = co_await read_facts(reader, request);
  if (!facts) co_return tl::unexpected(facts.error());
  if (request.operation == "UPDATE") {
    const auto read = co_await read_state_of_job(reader, request, *facts);
    if (!read) co_return tl::unexpected(read.error());
  }
  const AdmissionLookups lookups = facts->lookups();
  TrainJobReview review(request, lookups, *options, gates);
  while (review.step()) co_await kube::yield();
  co_return review.answer();
}

Task<Result<AdmissionAnswer>> answered(AdmissionAnswer answer) {
  co_return answer;
}

// Handlers for rules that read nothing.
WebhookHandler::Handle mutating_runtimes() {
  return
      [](AdmissionRequest request, AdmissionReader&) { return answered(mutate_runtime(request)); };
}
WebhookHandler::Handle validating_runtimes(Options options) {
  return [options = std::move(options)](AdmissionRequest request, AdmissionReader&) {
    return answered(validate_runtime(request, *options));
  };
}

Webhook webhook(bool is_mutating, std::string name, std::string path,
                const kube::Resource& resource) {
  Webhook made;
  made.configuration = is_mutating ? kDefaulter : kValidator;
  made.is_mutating = is_mutating;
  made.name = std::move(name);
  made.path = std::move(path);
  made.resource = resource;
  if (resource != kTrainJobs) made.object_selector = unless_disabled();
  return made;
}

}  // namespace

AdmissionRegistration trainjob_admission(const PipelineOptions& options,
                                         const jobset::Gates& gates) {
  const auto shared = std::make_shared<const PipelineOptions>(options);
  AdmissionRegistration made;
  made.webhooks = {
      webhook(true, "defaulter.trainjob.trainer.kubeflow.org", kMutateJob, kTrainJobs),
      webhook(true, "defaulter.trainingruntime.trainer.kubeflow.org", kMutateRuntime,
              kTrainingRuntimes),
      webhook(true, "defaulter.clustertrainingruntime.trainer.kubeflow.org", kMutateClusterRuntime,
              kClusterTrainingRuntimes),
      webhook(false, "validator.clustertrainingruntime.trainer.kubeflow.org",
              kValidateClusterRuntime, kClusterTrainingRuntimes),
      webhook(false, "validator.trainingruntime.trainer.kubeflow.org", kValidateRuntime,
              kTrainingRuntimes),
      webhook(false, "validator.trainjob.trainer.kubeflow.org", kValidateJob, kTrainJobs),
  };
  made.webhooks.front().conditions = {
      {"patched-or-of-an-older-version", kHasPatchesOrLegacyFields}};
  made.handlers = {
      {kMutateJob,
       [](AdmissionRequest request, AdmissionReader& reader) {
         return answered(mutate_trainjob(request, reader.client().clock().now()));
       },
       {}},
      {kMutateRuntime, mutating_runtimes(), {}},
      {kMutateClusterRuntime, mutating_runtimes(), {}},
      {kValidateRuntime, validating_runtimes(shared), {}},
      {kValidateClusterRuntime, validating_runtimes(shared), {}},
      {kValidateJob,
       [shared, gates](AdmissionRequest request, AdmissionReader& reader) {
         return validate(std::move(request), reader, shared, gates);
       },
       {}},
  };
  made.reads = {kTrainingRuntimes, kClusterTrainingRuntimes};
  return made;
}

}  // namespace trainer
