// AdmissionReview in, answer out (Kubeflow Trainer and JobSet, pkg/webhooks). Pure; what
// must be looked up comes in as functions.
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
  // An UPDATE by a client that may not know every field: what its object lacks was not removed
  // by intent. True without a field manager, as typed clients send whole objects, and for Kueue.
  // kubectl and server-side apply always name one, and remove what they mean to.
  bool may_lack_fields = false;
  std::string kind;  // of the request: "TrainJob", "ClusterTrainingRuntime", "JobSet", ...
  std::string name;  // "" for a create with generateName
};

struct AdmissionAnswer {
  bool is_allowed = true;
  int code = 200;      // 403 for Trainer's kinds, 422 for JobSet's
  std::string reason;  // "Forbidden", "Invalid"
  std::string message;
  std::vector<std::string> warnings;
  kube::Json json_patch;  // RFC 6902 operations; null without
};

// What the rules may ask for. The server answers from its caches, and live where a cache may lag (a
// runtime applied a moment ago).
struct AdmissionLookups {
  // The runtime as stored, or nullptr. kind: "TrainingRuntime" (ns set) or
  // "ClusterTrainingRuntime".
  std::function<std::shared_ptr<const kube::Json>(const std::string& kind, const std::string& ns,
                                                  const std::string& name)>
      runtime;
  std::function<std::shared_ptr<const kube::Json>(const std::string& ns, const std::string& name)>
      jobset;
  // The snapshot's text of a job that has one, or nullptr.
  std::function<std::shared_ptr<const std::string>(const std::string& ns, const std::string& name)>
      snapshot;
  std::function<bool(const std::string& name)> priority_class_exists;
  std::function<std::optional<kube::Json>(const std::string& ns, const std::string& name)> claim;
};

// Keeps the patches' times as Kueue needs them, converts the YAML of v2.0 and v2.1 (each with a
// warning that names today's field), and puts back extension fields that a PUT lacks. Without need
// it changes nothing: the answer has no json_patch.
AdmissionAnswer mutate_trainjob(const AdmissionRequest& request, kube::Time now);
// `gates`: of the JobSet controller that will own the job's JobSet.
AdmissionAnswer validate_trainjob(const AdmissionRequest& request, const AdmissionLookups& lookups,
                                  const pipeline::Plugins& plugins,
                                  const jobset::Gates& gates = {});
// Both kinds of runtimes. mutate_runtime converts or refuses fields of v2.0 and v2.1, and puts back
// extension fields that a PUT lacks.
AdmissionAnswer mutate_runtime(const AdmissionRequest& request);
AdmissionAnswer validate_runtime(const AdmissionRequest& request);
AdmissionAnswer mutate_jobset(const AdmissionRequest& request);
AdmissionAnswer validate_jobset(const AdmissionRequest& request, const AdmissionLookups& lookups,
                                const jobset::Gates& gates);

// Pods that a Job is about to make: exclusive placement (docs/decisions/0031). Only the
// request knows the namespace of every pod, so the lookups must not rely on the one they are given.
AdmissionAnswer mutate_pod(const AdmissionRequest& request,
                           const jobset::PlacementLookups& lookups);
AdmissionAnswer validate_pod(const AdmissionRequest& request,
                             const jobset::PlacementLookups& lookups);

// What lookups a request will need, so that the server can read them live before asking: the
// referenced runtime, claims, priority classes.
struct AdmissionNeeds {
  std::optional<std::pair<std::string, kube::ObjectKey>> runtime;  // kind, key
  std::vector<kube::ObjectKey> claims;
  std::vector<std::string> priority_classes;
};
// `runtime`: the runtime of an earlier answer, once it was read: its claims and priority classes
// are needed too.
AdmissionNeeds needs_of(const AdmissionRequest& request, const kube::Json* runtime = nullptr);

// An AdmissionReview's request as an answer's envelope: {apiVersion, kind, response{uid, allowed,
// ...}}.
kube::Json admission_review_response(const kube::Json& review, const AdmissionAnswer& answer);
std::optional<AdmissionRequest> read_admission_review(const kube::Json& review);

}  // namespace trainer
