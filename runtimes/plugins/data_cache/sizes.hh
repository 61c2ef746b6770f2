// The sizes say how many pods serve a job's dataset, and what each of them asks for. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtimes/pipeline/draft.hh"
#include "runtimes/pipeline/switches.hh"

namespace trainer::pipeline {

// This variable is the number of cache pods, by which the head finds its workers. If the runtime's
// container has it, a TrainJob may set the number and the resources of the cache pods
// (is_sizable()).
inline constexpr std::string_view kGroupSize = "LWS_GROUP_SIZE";
inline constexpr std::string_view kClusterSize = "CLUSTER_SIZE";
inline constexpr std::string_view kDatasetEnv = "spec.initializer.dataset.env";

struct Cache {
  std::size_t job;  // an index into replicatedJobs
  std::string container;
};

bool is_sizable(const Draft& draft, const Cache& cache);

// Returns a variable of spec.initializer.dataset.env; the last one counts if several have this
// name.
std::optional<Setting> setting_of(const Draft& draft, std::string_view name);

struct Sizes {
  std::optional<std::int32_t> pods;  // nullopt: the runtime's number
  kube::Json resources;              // core/v1 ResourceRequirements; null if they are the runtime's
};

// Returns the sizes that the job asks for. If one of them is refused, all are the runtime's.
Sizes sizes_of(const Draft& draft, const Cache& cache, kube::FieldErrors& errors);

// Returns whether the cache pods of the existing JobSet have these sizes; true if there is no
// JobSet.
bool are_stored(const Draft& draft, const Cache& cache, const Sizes& sizes);

// Refuses all sizes except the runtime's, with which the JobSet was made.
void refuse_sizes(const Draft& draft, const Cache& cache, kube::FieldErrors& errors);

}  // namespace trainer::pipeline
