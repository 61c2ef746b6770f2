// torchrun starts this many processes on a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/int_or_string.hh"
#include "kube/model/json.hh"
#include "runtimes/lifecycle/processes.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// The count is either a number, or a word by which torchrun starts one process for each
// accelerator.
struct ProcessCount {
  // The number without a bound; it was counted from resources or settings.
  std::optional<std::int64_t> number;
  std::int64_t accelerators = 0;   // the accelerators of the container
  std::string_view word = "auto";  // "auto" or "gpu"

  std::string to_string() const {
    return number ? std::to_string(process_count(*number)) : std::string(word);
  }
  // There is one accelerator, or one process. Both can be true: several processes may share one
  // accelerator (Kubeflow Trainer, plugins/torch).
  bool is_single_device() const { return accelerators == 1 || (number && *number == 1); }
  bool is_several() const { return number ? *number > 1 : accelerators > 1; }
};

// Returns the number or word of the job, else that of its runtime.
std::optional<IntOrString> desired_processes(const Draft& draft, const TorchPolicy& policy);

// Counts from the final container. A `desired` number and "gpu" stay unchanged, and so does "auto",
// the default, if the container has accelerators that torchrun finds. If it has others, "auto"
// becomes their number. Otherwise, and for "cpu", there is one process for each CPU (rounded up,
// requests before limits, at least one).
ProcessCount count_processes(const std::optional<IntOrString>& desired, const kube::Json& container,
                             const DeviceRules& devices);

}  // namespace trainer::pipeline
