// How many pods each job has, what they ask for, and what they are called (Kubeflow
// Trainer, pkg/runtime/core/trainingruntime.go).
#pragma once

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// The merged templates as upstream has them, where they go through Go types before any plugin sees
// them. Typed clients read and write them so, and an object that says the same in another form
// would be a changed one for them. What the job itself says comes later: there a zero is meant,
// such as the `value: ""` of its env.
void normalize(Draft& draft);

// One pod set for each replicated job, in order, with its count before any plugin.
void count_pods(Draft& draft);

// What a job's own settings may become in all jobs of its runtime together: ten times of what the
// API server takes.
inline constexpr std::size_t kMaxCopiedBytes = 16 << 20;

// Refuses, in draft.errors, what would multiply: the job's own settings go into each job that
// trains or initializes, the subdomain into each of its hosts' names. False where it did.
bool check_copies(Draft& draft);

// spec.trainer.resourcesPerNode over the runtime's, key by key, in every container that trains.
void merge_resources(Draft& draft);

// spec.trainer.numNodes becomes the count of the trainer job, for frameworks whose nodes are all
// alike.
void apply_num_nodes(Draft& draft, std::string_view source);

// Once all plugins have counted: parallelism and completions of every job, names and requests of
// its pods.
void finalize_pod_sets(Draft& draft);

// What one Job may have, since batch/v1 refuses an indexed Job of more, and what all Jobs of a
// TrainJob may have together: Kubernetes is built for 150,000 pods a cluster. A number with too
// many zeros must be refused before anything is computed for each pod. The pod sets are final.
inline constexpr std::int32_t kMaxPods = 100'000;
kube::FieldErrors check_sizes(const Draft& draft);

// An error about the number of pods, at spec.trainer.numNodes where `set` is counted by it, else at
// the runtime.
kube::FieldError too_many_pods(const Draft& draft, const PodSet& set, std::string detail);

// Names that would exceed the 63 characters of a DNS label, with what is left for the job's own
// name.
kube::FieldErrors check_names(const Draft& draft);

}  // namespace trainer::pipeline
