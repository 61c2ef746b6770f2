// An AdmissionReview gets its answer here (Kubeflow Trainer and JobSet, pkg/webhooks). Pure: other
// objects are read through functions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "runtimes/jobset/exclusive.hh"
#include "runtimes/jobset/plan.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer {

struct AdmissionRequest {
  std::string operation;  // CREATE, UPDATE, DELETE
  kube::Json object;      // null on DELETE
  kube::Json old_object;  // null on CREATE
  std::string ns;
  bool is_dry_run = false;
  // This is an UPDATE by a client that may not know every field, so that its object may lack some
  // without intent. It is true without a field manager, since typed clients name none, and for
  // Kueue. kubectl and server-side apply always name one.
  bool may_lack_fields = false;
  std::string kind;  // the kind of the request: "TrainJob", "ClusterTrainingRuntime", "JobSet", ...
  std::string name;  // "" for a create with generateName
};

struct AdmissionAnswer {
  bool is_allowed = true;
  int code = 200;  // the code of a refusal: 403, 422 for JobSets, 404 for pods whose node is gone
  std::string reason;  // "Forbidden", "Invalid", "NotFound"
  std::string message;
  std::vector<std::string> warnings;
  kube::Json json_patch;  // RFC 6902 operations; null if nothing changes
};

// The rules may read these. The server answers from its caches, and by GET if a cache may be late
// (a runtime applied a moment ago).
struct AdmissionLookups {
  // Returns the stored runtime, or nullptr. kind: "TrainingRuntime" (ns set) or
  // "ClusterTrainingRuntime".
  std::function<std::shared_ptr<const kube::Json>(const std::string& kind, const std::string& ns,
                                                  const std::string& name)>
      runtime;
  std::function<std::shared_ptr<const kube::Json>(const std::string& ns, const std::string& name)>
      jobset;
  // Returns the text of the runtime snapshot of a TrainJob; nullptr if it has none.
  std::function<std::shared_ptr<const std::string>(const std::string& ns, const std::string& name)>
      snapshot;
  std::function<bool(const std::string& name)> priority_class_exists;
  std::function<std::optional<kube::Json>(const std::string& ns, const std::string& name)> claim;
  // Returns whether the reader of the answer has read this warning about the runtime already, in
  // the same output. If it is null, the answer is no.
  std::function<bool(const Runtime& runtime, const std::string& warning)> is_warned;
};

// Sets `time` of new and changed runtimePatches; converts fields of v2.0 and v2.1, each with a
// warning that names today's field; puts back extension fields that a PUT lacks, and the trainer's
// command that Kueue sends changed.
AdmissionAnswer mutate_trainjob(const AdmissionRequest& request, kube::Time now);
// `options` is that of the installation. `gates` is the feature gates of the JobSet controller that
// will own the job's JobSet.
AdmissionAnswer validate_trainjob(const AdmissionRequest& request, const AdmissionLookups& lookups,
                                  const PipelineOptions& options, const jobset::Gates& gates = {});
// Takes all warnings of a build, except those that is_warned() knows of its runtime.
std::vector<std::string> take_warnings(Built& built, const Runtime& runtime,
                                       const AdmissionLookups& lookups);
// These are for both kinds of runtimes. mutate_runtime converts or refuses fields of v2.0 and v2.1,
// and puts back extension fields that a PUT lacks.
AdmissionAnswer mutate_runtime(const AdmissionRequest& request);
AdmissionAnswer validate_runtime(const AdmissionRequest& request, const PipelineOptions& options);
AdmissionAnswer mutate_jobset(const AdmissionRequest& request);
AdmissionAnswer validate_jobset(const AdmissionRequest& request, const AdmissionLookups& lookups,
                                const jobset::Gates& gates);

// These are for pods that a Job creates: exclusive placement (docs/decisions/0031). A pod in a
// request may lack its namespace, so the functions of `lookups` must use the request's instead of
// their argument.
AdmissionAnswer mutate_pod(const AdmissionRequest& request,
                           const jobset::PlacementLookups& lookups);
AdmissionAnswer validate_pod(const AdmissionRequest& request,
                             const jobset::PlacementLookups& lookups);

// The rules will look up these objects for a request, so that the server can GET them before: the
// runtime that it refers to, claims, priority classes.
struct AdmissionNeeds {
  std::optional<std::pair<std::string, kube::ObjectKey>> runtime;  // kind, key
  std::vector<kube::ObjectKey> claims;
  std::vector<std::string> priority_classes;
};
// `runtime` is that of an earlier answer, once it was read; its claims and priority classes are
// needed, too.
AdmissionNeeds needs_of(const AdmissionRequest& request, const pipeline::Plugins& plugins,
                        const kube::Json* runtime = nullptr);

// Returns the AdmissionReview that answers `review`: {apiVersion, kind, response{uid, allowed,
// ...}}.
kube::Json admission_review_response(const kube::Json& review, const AdmissionAnswer& answer);
// Returns nullopt if it has no request with a uid.
std::optional<AdmissionRequest> read_admission_review(const kube::Json& review);

}  // namespace trainer
