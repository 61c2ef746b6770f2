// Which pods of a job serve its dataset from memory. Pure.
#pragma once

#include <optional>
#include <string>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// The ancestor of the job that serves a dataset, in runtimes as guides for Trainer 2.1 print them.
inline constexpr std::string_view kCacheStep = "cache-initializer";

// spec.initializer.dataset where its URI is "cache://SCHEMA/TABLE", else nullptr.
const InitializerSource* cached_dataset(const TrainJob& job);

// The ancestor whose job takes spec.initializer.dataset: a cached one's is kCacheStep where the
// runtime has it.
std::string_view dataset_step(const Draft& draft);

// The name of the container that fetches or serves the dataset in a job of that step: the step's
// name, or in a job of kCacheStep without such a container the first one's.
std::string dataset_container(const Draft& draft, std::size_t index);

}  // namespace trainer::pipeline
