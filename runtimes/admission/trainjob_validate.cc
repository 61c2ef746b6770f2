// This is the validating webhook of TrainJobs (Kubeflow Trainer, pkg/webhooks/trainjob_webhook.go):
// it decides which rules a request meets, and against which runtime.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "api/api.hh"
#include "kube/model/meta.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/admission/answers.hh"
#include "runtimes/admission/patch_changes.hh"
#include "runtimes/admission/trainjob_review.hh"
#include "runtimes/admission/trainjob_rules.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/jobset/failure_pattern.hh"
#include "runtimes/pipeline/exec_sizes.hh"
#include "runtimes/pipeline/pipeline.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/runtime_snapshot.hh"
#include "runtimes/trainjob/snapshot.hh"

namespace trainer {
namespace {

using kube::Json;

const Json& spec_of(const Json& object) {
  return object.get("spec");
}

Json reference_json(const Json& trainjob) {
  const Json* ref = spec_of(trainjob).find("runtimeRef");
  return ref ? *ref : Json::object();
}

bool is_namespaced(const RuntimeRef& ref) {
  return ref.kind == std::optional<std::string>("TrainingRuntime");
}

// The words are upstream's, with its capital letter in one of the two paths.
kube::FieldError runtime_missing(const TrainJob& job, const Json& object,
                                 const AdmissionLookups& lookups) {
  const RuntimeRef& ref = job.spec.runtimeRef;
  const bool namespaced = is_namespaced(ref);
  const bool is_of_namespace =
      !namespaced && lookups.runtime &&
      lookups.runtime(kTrainingRuntimes.kind, job.metadata.ns, ref.name) != nullptr;
  return kube::invalid(
      namespaced ? "spec.runtimeRef" : "spec.RuntimeRef", reference_json(object),
      "{} \"{}\" not found: specified {} must be created before the TrainJob is created{}",
      runtime_kind_name(ref), ref.name, namespaced ? "trainingRuntime" : "clusterTrainingRuntime",
      is_of_namespace ? "; the namespace has a TrainingRuntime of this name: write spec.runtimeRef."
                        "kind: TrainingRuntime to mean it"
                      : "");
}

std::optional<Runtime> live_runtime(const TrainJob& job, const AdmissionLookups& lookups) {
  const RuntimeRef& ref = job.spec.runtimeRef;
  if (!lookups.runtime) return std::nullopt;
  const auto object =
      lookups.runtime(ref.kind.value_or("ClusterTrainingRuntime"),
                      is_namespaced(ref) ? job.metadata.ns : std::string(), ref.name);
  if (!object) return std::nullopt;
  auto runtime = read_runtime(*object);
  if (!runtime) return std::nullopt;
  return std::move(*runtime);
}

// Returns the runtime that the job was started with; nullopt before the start, and if the snapshot
// does not match the hash in the status.
std::optional<Runtime> snapshot_runtime(const TrainJob& before, const AdmissionLookups& lookups) {
  const auto text =
      lookups.snapshot ? lookups.snapshot(before.metadata.ns, before.metadata.name) : nullptr;
  if (!text || !is_text_of(before.status, *text)) return std::nullopt;
  const auto snapshot = snapshot_from(*text, before.status.runtimeSnapshotHash);
  const auto runtime = runtime_in(*snapshot, before.spec.runtimeRef, before.metadata.ns);
  if (!runtime) return std::nullopt;
  return **runtime;
}

void append(kube::FieldErrors& errors, kube::FieldErrors more) {
  errors.insert(errors.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

// Refuses old fields that no mutating webhook has converted. They would be stored and do nothing.
AdmissionAnswer refuse_legacy(const AdmissionRequest& request) {
  Json object = request.object;
  const Conversion conversion = convert_legacy_trainjob(object);
  if (!conversion.errors.empty()) return forbid(conversion.errors);
  std::string text;
  for (const std::string& warning : conversion.warnings)
    text += (text.empty() ? "" : "; ") + warning;
  return forbid(std::move(text));
}

// Errors that the stored job has already do not count.
kube::FieldErrors new_exec_errors(const TrainJob& before, const TrainJob& job,
                                  const Runtime& runtime, const PipelineOptions& options) {
  const auto errors_of = [&](const TrainJob& one) {
    const auto built = build(one, runtime, options);
    return built ? pipeline::check_exec_sizes(*built, one, runtime, options) : kube::FieldErrors();
  };
  kube::FieldErrors errors = errors_of(job);
  if (!errors.empty()) kube::erase_known(errors, errors_of(before));
  return errors;
}

AdmissionAnswer validate_change(const AdmissionRequest& request, const TrainJob& before,
                                const TrainJob& job, const AdmissionLookups& lookups,
                                const PipelineOptions& options) {
  kube::FieldErrors errors = check_parts_may_change(before, job);
  if (are_patches_changed(request.old_object, request.object))
    append(errors, check_patches_may_change(before, job, lookups));
  auto runtime = snapshot_runtime(before, lookups);
  if (!runtime) runtime = live_runtime(job, lookups);
  if (runtime) {
    append(errors, validate_trainjob(job, &before, *runtime, options));
    if (errors.empty()) errors = new_exec_errors(before, job, *runtime, options);
  } else {
    errors.push_back(runtime_missing(job, request.object, lookups));
  }
  return forbid(errors);
}

}  // namespace

bool TrainJobReview::step() {
  switch (next_) {
    case Step::kRules:
      next_ = Step::kBuild;
      return check_rules();
    case Step::kBuild:
      build_jobset();
      next_ = jobset_ ? Step::kJobSet : Step::kOthers;
      return answer_.is_allowed;
    case Step::kJobSet:
      check_jobset();
      next_ = Step::kChildren;
      return true;
    case Step::kChildren:
      check_children();
      next_ = Step::kOthers;
      return true;
    case Step::kOthers:
      warn_about_other_objects(*job_, *runtime_, lookups_, answer_.warnings);
      return false;
  }
  return false;
}

bool TrainJobReview::check_rules() {
  const bool is_update = request_.operation == "UPDATE";
  if (!is_update && request_.operation != "CREATE") return false;
  // Objects that are being deleted, and updates that do not change the spec, are always allowed.
  if (is_update && (kube::ObjectMeta::of(request_.object).deletion_timestamp ||
                    spec_of(request_.object) == spec_of(request_.old_object))) {
    return false;
  }
  const auto refuse = [this](AdmissionAnswer answer) {
    answer_ = std::move(answer);
    return false;
  };
  if (has_legacy_fields(request_.object) &&
      are_legacy_fields_changed(request_.old_object, request_.object))
    return refuse(refuse_legacy(request_));
  auto job = read_stored_trainjob(request_.object);
  if (!job) return refuse(forbid(job.error()));
  if (job->metadata.ns.empty()) job->metadata.ns = request_.ns;
  if (!is_supported_runtime(job->spec.runtimeRef))
    return refuse(forbid(fmt::format(
        "unsupported runtime: {}; in spec.runtimeRef write kind ClusterTrainingRuntime or "
        "TrainingRuntime, and apiGroup trainer.kubeflow.org or none",
        runtime_kind_name(job->spec.runtimeRef))));
  if (is_update) {
    // runtimeRef, trainer and initializer are immutable by schema, but the last two can be added
    // and removed. So these and patches can break a rule that held before.
    const auto is_there = [](const Json& object, std::string_view part) {
      return spec_of(object).find(part) != nullptr;
    };
    const bool is_part_changed =
        is_there(request_.old_object, "trainer") != is_there(request_.object, "trainer") ||
        is_there(request_.old_object, "initializer") != is_there(request_.object, "initializer");
    if (!is_part_changed && !are_patches_changed(request_.old_object, request_.object))
      return false;
    auto before = read_stored_trainjob(request_.old_object);
    if (!before)
      return false;  // the stored object cannot be compared with what it should have been
    if (before->metadata.ns.empty()) before->metadata.ns = request_.ns;
    return refuse(validate_change(request_, *before, *job, lookups_, options_));
  }
  job_ = std::move(*job);
  runtime_ = live_runtime(*job_, lookups_);
  if (!runtime_)
    return refuse(forbid(kube::FieldErrors{runtime_missing(*job_, request_.object, lookups_)}));
  kube::FieldErrors errors = trainer::validate_trainjob(*job_, nullptr, *runtime_, options_);
  append(errors, check_priority_classes(*runtime_, *options_.plugins, lookups_));
  answer_ = forbid(errors);
  return answer_.is_allowed;
}

// The following steps warn about objects that could not be created although the request is allowed.
// Texts with which no process can be started are refused.
void TrainJobReview::build_jobset() {
  auto built = build(*job_, *runtime_, options_);
  if (!built) {
    answer_.warnings = {
        fmt::format("this job cannot be started: {}", kube::to_string(built.error()))};
    return;
  }
  if (const auto errors = pipeline::check_exec_sizes(*built, *job_, *runtime_, options_);
      !errors.empty()) {
    answer_ = forbid(errors);
    return;
  }
  answer_.warnings = take_warnings(*built, *runtime_, lookups_);
  if (auto jobset = read_jobset(built->jobset)) jobset_ = std::move(*jobset);
}

void TrainJobReview::check_jobset() {
  // Patterns of the TrainJob's own policy were refused before; these are the runtime's.
  if (jobset_->spec.failurePolicy)
    if (const jobset::FailurePatterns patterns(*jobset_->spec.failurePolicy); patterns.refusal())
      answer_.warnings.push_back(fmt::format("spec.runtimeRef: of {} \"{}\", in the JobSet: {}",
                                             runtime_->kind, runtime_->metadata.name,
                                             patterns.refusal()->to_string()));
  const auto refused = jobset::validate_create(
      *jobset_, gates_,
      [](const std::string&, const std::string&) { return std::optional<Json>(); });
  if (!refused.empty())
    answer_.warnings.push_back(
        fmt::format("the JobSet of this job will be refused: {}", kube::to_string(refused)));
}

void TrainJobReview::check_children() {
  auto errors = jobset::metadata_errors(*jobset_);
  if (errors.empty()) errors = jobset::child_errors(*jobset_);
  if (!errors.empty())
    answer_.warnings.push_back(
        fmt::format("this job cannot start, since the API server refuses what its JobSet says: {}",
                    kube::to_string(errors)));
}

std::vector<std::string> take_warnings(Built& built, const Runtime& runtime,
                                       const AdmissionLookups& lookups) {
  std::vector<std::string> warnings = std::move(built.warnings);
  for (RuntimeWarning& warning : built.runtime_warnings)
    if (!lookups.is_warned || !lookups.is_warned(runtime, warning.in_runtime))
      warnings.push_back(std::move(warning.text));
  return warnings;
}

AdmissionAnswer validate_trainjob(const AdmissionRequest& request, const AdmissionLookups& lookups,
                                  const PipelineOptions& options, const jobset::Gates& gates) {
  TrainJobReview review(request, lookups, options, gates);
  while (review.step()) continue;
  return review.answer();
}

}  // namespace trainer
