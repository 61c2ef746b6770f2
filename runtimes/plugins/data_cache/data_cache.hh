// Some pods of a job serve its dataset from memory. Pure.
#pragma once

#include <optional>
#include <string>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// A replicated job that serves a dataset has this ancestor label, in the runtimes of guides for
// Trainer 2.1.
inline constexpr std::string_view kCacheStep = "cache-initializer";

// Returns spec.initializer.dataset if its URI is "cache://SCHEMA/TABLE", else nullptr.
const InitializerSource* cached_dataset(const TrainJob& job);

// Returns the ancestor label of the replicated job that spec.initializer.dataset applies to:
// kCacheStep for a cached dataset if the runtime has that label, else kDatasetStep.
std::string_view dataset_step(const Draft& draft);

// Returns the name of the container that fetches or serves the dataset in the replicated job at
// `index`: that of its ancestor label; under kCacheStep without such a container, the first one's.
std::string dataset_container(const Draft& draft, std::size_t index);

}  // namespace trainer::pipeline
