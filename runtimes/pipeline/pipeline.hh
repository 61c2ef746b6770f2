// TrainJob + runtime -> JobSet and its dependent objects. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/accelerators.hh"

namespace trainer {

namespace pipeline {
class Plugin;
// In the order in which they run within a phase.
using Plugins = std::vector<std::unique_ptr<const Plugin>>;
}  // namespace pipeline

// The plugins that run, and the settings of the installation that reach the pods.
struct PipelineOptions {
  explicit PipelineOptions(const pipeline::Plugins& list) : plugins(&list) {}

  const pipeline::Plugins* plugins;  // outlives the options
  bool is_progress_enabled = false;  // the status server runs
  // Whether jobs report progress only where an annotation of the job or its runtime asks for it:
  // the feature gate TrainJobStatus is off. Else all report but those whose annotation says no.
  bool is_progress_opt_in = false;
  std::string status_server_url;  // "https://SERVICE.NAMESPACE.svc:10443", without path
  std::string status_server_ca;   // PEM
  std::string cluster_domain = "cluster.local";
  pipeline::DeviceRules devices;  // of the admin
};

// One replicated job as gangs, Kueue and the SDK see it.
struct PodSet {
  std::string name;
  std::string ancestor;    // the value of the ancestor label; "" without it
  std::int32_t count = 1;  // pods of each Job
  std::int32_t replicas = 1;
  kube::ResourceList requests;  // of one pod, from the merged template
  std::string pod_prefix;       // "j-node-"
  std::string subdomain;        // "j"
  // Of all replicas together.
  std::int64_t pods() const { return std::int64_t{std::max(count, 0)} * std::max(replicas, 0); }
  // DNS names of its pods, "j-node-0-0.j". Computed when asked for: a job may have a great many.
  std::vector<std::string> endpoints() const;
};

// An object beside the JobSet.
struct DependentObject {
  enum class Mode {
    kCreateOnce,  // POST when absent; its content is not repeatable (keys) or never changes
    kApply,       // applied whenever the job is suspended or it is absent
  };
  Mode mode = Mode::kApply;
  kube::Resource resource;
  // Complete but for ownerReferences, which plan_trainjob() adds, and for what `generate` names,
  // which the TrainJob controller makes, since plans are pure.
  kube::Json object;
  enum class Generate { kNothing, kSshKeyPair } generate = Generate::kNothing;
  bool is_needed = true;  // false: pods start and train without it, so that nothing waits for it
};

// A warning about what the runtime of a job says, for who reads only those of the job.
struct RuntimeWarning {
  std::string text;
  std::string in_runtime;  // the sentence by which warn_runtime() says the same
};

struct Built {
  kube::Json jobset;  // {apiVersion, kind, metadata{name, namespace, labels, annotations}, spec},
                      // without ownerReferences
  std::vector<DependentObject> dependents;  // PodGroup, ConfigMaps, Secrets
  std::vector<PodSet> pod_sets;
  std::vector<std::string> warnings;             // for admission and render
  std::vector<RuntimeWarning> runtime_warnings;  // likewise
  // What admission refuses, and pods do without: a job that an earlier version took goes on.
  kube::FieldErrors ignored;
};

// Where a value in the result came from, for `render --explain`; filled only when asked.
struct Explanation {
  std::string path;    // "spec.replicatedJobs[node].template.spec.[...].env[PET_NNODES]"
  std::string source;  // "plugin torch", "runtimePatches[kueue.x-k8s.io/manager]", ...
};

// Phases in order: merge patches, count nodes, merge resources, ML policy, pod spec, gang policy,
// dependent objects. `stored`: the job's JobSet where it exists, of which some cannot change.
// Errors are everything that cannot be built, each with its path.
tl::expected<Built, kube::FieldErrors> build(const TrainJob& job, const Runtime& runtime,
                                             const PipelineOptions& options,
                                             std::vector<Explanation>* explanations = nullptr,
                                             const kube::Json* stored = nullptr);

// The jobs of the runtime's template; none where it has no template.
const std::vector<ReplicatedJob>& replicated_jobs_of(const Runtime& runtime);
// The value of the ancestor label, "" without: which step of a TrainJob this job runs.
std::string_view ancestor_of(const ReplicatedJob& job);

// The rules for TrainJobs that need job and runtime only (Kubeflow Trainer,
// pkg/runtime/framework/plugins). `before` is null on create.
kube::FieldErrors validate_trainjob(const TrainJob& job, const TrainJob* before,
                                    const Runtime& runtime, const PipelineOptions& options);
// The rules for runtimes (Kubeflow Trainer, pkg/webhooks).
kube::FieldErrors validate_runtime(const Runtime& runtime);
std::vector<std::string> warn_runtime(const Runtime& runtime, const PipelineOptions& options);

}  // namespace trainer
