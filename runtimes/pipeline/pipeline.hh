// A TrainJob and its runtime become a JobSet and its dependent objects. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/jobset/elastic.hh"
#include "runtimes/pipeline/accelerators.hh"

namespace trainer {

namespace pipeline {
class Plugin;
// The plugins are in the order in which they run within a phase.
using Plugins = std::vector<std::unique_ptr<const Plugin>>;
}  // namespace pipeline

// These are the plugins that run, and the settings of the installation that reach the pods.
struct PipelineOptions {
  explicit PipelineOptions(const pipeline::Plugins& list) : plugins(&list) {}

  const pipeline::Plugins* plugins;  // outlives the options
  bool is_progress_enabled = false;  // the status server runs
  // Jobs report progress only if an annotation of the job or its runtime asks for it: the feature
  // gate TrainJobStatus is off. If it is false, all report except those whose annotation says no.
  bool is_progress_opt_in = false;
  // The JobSet controller counts attempts by annotation (runtimes/jobset/execution_attempts.hh).
  bool counts_attempts = false;
  std::string status_server_url;  // "https://SERVICE.NAMESPACE.svc:10443", without path
  std::string status_server_ca;   // PEM
  std::string cluster_domain = "cluster.local";
  pipeline::DeviceRules devices;  // the administrator's rules
};

// This is one replicated job in the form in which gangs, Kueue and the SDK see it.
struct PodSet {
  std::string name;
  std::string ancestor;    // the value of the ancestor label; "" without it
  std::int32_t count = 1;  // pods of each Job
  // The counts between which an elastic job may change.
  std::optional<jobset::ElasticNodes> bounds;
  std::int32_t replicas = 1;
  kube::ResourceList requests;  // the requests of one pod, from the merged template
  std::string pod_prefix;       // "j-node-"
  std::string subdomain;        // "j"
  // Returns the pods of all replicas together.
  std::int64_t pods() const { return all_replicas(count); }
  // Returns how many pods of each Job there must be at least, and may be at most.
  std::int32_t least() const { return bounds ? bounds->least : count; }
  std::int32_t most() const { return bounds ? std::max(count, bounds->most) : count; }
  // Returns the pods of all replicas together, of at least and at most so many of each Job.
  std::int64_t least_pods() const { return all_replicas(least()); }
  std::int64_t most_pods() const { return all_replicas(most()); }
  // Returns the DNS names of its pods, "j-node-0-0.j". They are computed in each call: a job may
  // have a great many.
  std::vector<std::string> endpoints() const;

 private:
  std::int64_t all_replicas(std::int32_t pods_of_job) const {
    return std::int64_t{std::max(pods_of_job, 0)} * std::max(replicas, 0);
  }
};

// This is an object beside the JobSet.
struct DependentObject {
  enum class Mode {
    kCreateOnce,  // POST if it is absent; its content is not repeatable (keys) or never changes
    kApply,       // applied whenever the job is suspended or the object is absent
  };
  Mode mode = Mode::kApply;
  kube::Resource resource;
  // The object is complete except for ownerReferences, which plan_trainjob() adds, and for what
  // `generate` names, which the TrainJob controller makes, since plans are pure.
  kube::Json object;
  enum class Generate { kNothing, kSshKeyPair } generate = Generate::kNothing;
  bool is_needed = true;  // false: pods start and train without it, so that nothing waits for it
};

// This is a warning about a setting in the runtime of a job, for readers of the job's warnings
// alone.
struct RuntimeWarning {
  std::string text;
  std::string in_runtime;  // the sentence by which warn_runtime() says the same
};

struct Built {
  kube::Json jobset;  // {apiVersion, kind, metadata{name, namespace, labels, annotations}, spec},
                      // without ownerReferences
  std::vector<DependentObject> dependents;  // PodGroup, Workload, ConfigMaps, Secrets
  std::vector<PodSet> pod_sets;
  std::vector<std::string> warnings;             // admission and render show them
  std::vector<RuntimeWarning> runtime_warnings;  // admission and render show them, too
  // Admission refuses these fields, and the pods run without them: a job that an earlier version
  // accepted goes on.
  kube::FieldErrors ignored;
};

// It says where a value in the result came from, for `render --explain`; filled only on request.
struct Explanation {
  std::string path;    // "spec.replicatedJobs[node].template.spec.[...].env[PET_NNODES]"
  std::string source;  // "plugin torch", "runtimePatches[kueue.x-k8s.io/manager]", ...
};

// Runs the phases in order: merge patches, count nodes, merge resources, ML policy, pod spec, gang
// policy, dependent objects. `stored` is the job's JobSet if it exists; some of it cannot change.
// Errors are all parts that cannot be built, each with its path.
tl::expected<Built, kube::FieldErrors> build(const TrainJob& job, const Runtime& runtime,
                                             const PipelineOptions& options,
                                             std::vector<Explanation>* explanations = nullptr,
                                             const kube::Json* stored = nullptr);

// Returns the jobs of the runtime's template; none if it has no template.
const std::vector<ReplicatedJob>& replicated_jobs_of(const Runtime& runtime);

// Checks the rules for TrainJobs that need job and runtime only (Kubeflow Trainer,
// pkg/runtime/framework/plugins). `before` is null on create.
kube::FieldErrors validate_trainjob(const TrainJob& job, const TrainJob* before,
                                    const Runtime& runtime, const PipelineOptions& options);
// Checks the rules for runtimes (Kubeflow Trainer, pkg/webhooks).
kube::FieldErrors validate_runtime(const Runtime& runtime);
std::vector<std::string> warn_runtime(const Runtime& runtime, const PipelineOptions& options);

}  // namespace trainer
