// The pod sets say how many pods each job has, what they ask for, and how they are called (Kubeflow
// Trainer, pkg/runtime/core/trainingruntime.go).
#pragma once

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Writes the merged templates in the form in which Go types print them (kube::write_as_go).
// Upstream does this before any plugin sees them: typed clients such as Kueue would take the same
// content in another form for a change. The values of the job itself are added later and are not
// normalised: a zero there is intended, such as the `value: ""` of its env.
void normalize(Draft& draft);

// These limits are for the containers of one pod, and for the resources that it may name in all of
// them: plugins write into each container, and schedulers get the sum of each resource. Returns
// false, with the reason in draft.errors, if a pod has more.
inline constexpr std::size_t kMaxContainers = 1'000;
inline constexpr std::size_t kMaxResources = 10'000;
bool check_pods(Draft& draft);

// Makes one pod set for each replicated job, in order, with its count before any plugin.
void count_pods(Draft& draft);

// All copies of a job's own settings together, one for each job of its runtime, may have this many
// bytes: ten times what the API server accepts for an object.
inline constexpr std::size_t kMaxCopiedBytes = 16 << 20;

// Checks that limit: the job's own settings are copied into each replicated job that trains or
// initializes, the subdomain into the name of each host. Returns false, with the reason in
// draft.errors, if it is exceeded.
bool check_copies(Draft& draft);

// Merges spec.trainer.resourcesPerNode over the runtime's, key by key, in every container that
// trains.
void merge_resources(Draft& draft);

// Uses spec.trainer.numNodes as the count of the trainer job, for frameworks whose nodes are all
// alike.
void apply_num_nodes(Draft& draft, std::string_view source);

// Returns how many pods a job will have, as far as this is known before the plugins have counted.
std::int32_t expected_pods(const Draft& draft, std::size_t index);

// It is called once all plugins have counted, and sets parallelism and completions of every job,
// names and requests of its pods.
void finalize_pod_sets(Draft& draft);

// These limits are for the pods of one Job, since batch/v1 refuses a larger Indexed Job, and for
// those of all Jobs of a TrainJob together: Kubernetes is built for 150,000 pods in a cluster.
// check_sizes() needs final pod sets, and runs before anything is computed for each pod.
inline constexpr std::int32_t kMaxPods = 100'000;
kube::FieldErrors check_sizes(const Draft& draft);

// Returns an error about the number of pods, at spec.trainer.numNodes if it decides about the count
// of `set`, else at the runtime.
kube::FieldError too_many_pods(const Draft& draft, const PodSet& set, std::string detail);

// Finds names that would exceed the 63 characters of a DNS label, and says how long the job's own
// name may be.
kube::FieldErrors check_names(const Draft& draft);

}  // namespace trainer::pipeline
