// How many pods each job has, what they ask for, and what they are called (Kubeflow
// Trainer, pkg/runtime/core/trainingruntime.go).
#pragma once

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Writes the merged templates as Go types print them (kube::write_as_go), as upstream does before
// any plugin sees them: typed clients such as Kueue would take the same content in another form for
// a change. The values of the job itself are added later and are not normalised: a zero there is
// meant, such as the `value: ""` of its env.
void normalize(Draft& draft);

// The most containers of one pod, and the most resources that it may name in all of them: plugins
// write into each container, and schedulers get the sum of each resource. False, with the reason in
// draft.errors, where a pod has more.
inline constexpr std::size_t kMaxContainers = 1'000;
inline constexpr std::size_t kMaxResources = 10'000;
bool check_pods(Draft& draft);

// One pod set for each replicated job, in order, with its count before any plugin.
void count_pods(Draft& draft);

// How many bytes all copies of a job's own settings may have together, one for each job of its
// runtime: ten times what the API server accepts for an object.
inline constexpr std::size_t kMaxCopiedBytes = 16 << 20;

// Checks that limit: the job's own settings are copied into each replicated job that trains or
// initializes, the subdomain into the name of each host. False, with the reason in draft.errors,
// where it is exceeded.
bool check_copies(Draft& draft);

// spec.trainer.resourcesPerNode over the runtime's, key by key, in every container that trains.
void merge_resources(Draft& draft);

// spec.trainer.numNodes becomes the count of the trainer job, for frameworks whose nodes are all
// alike.
void apply_num_nodes(Draft& draft, std::string_view source);

// How many pods a job will have, as far as can be said before the plugins have counted.
std::int32_t expected_pods(const Draft& draft, std::size_t index);

// Once all plugins have counted: parallelism and completions of every job, names and requests of
// its pods.
void finalize_pod_sets(Draft& draft);

// The most pods of one Job, since batch/v1 refuses a larger Indexed Job, and of all Jobs of a
// TrainJob together: Kubernetes is built for 150,000 pods in a cluster. check_sizes() needs final
// pod sets, and comes before anything is computed for each pod.
inline constexpr std::int32_t kMaxPods = 100'000;
kube::FieldErrors check_sizes(const Draft& draft);

// An error about the number of pods, at spec.trainer.numNodes where `set` is counted by it, else at
// the runtime.
kube::FieldError too_many_pods(const Draft& draft, const PodSet& set, std::string detail);

// Names that would exceed the 63 characters of a DNS label, with what is left for the job's own
// name.
kube::FieldErrors check_names(const Draft& draft);

}  // namespace trainer::pipeline
