// How many processes torchrun starts on a node.
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

// Either a number, or a word by which torchrun starts one process per accelerator.
struct ProcessCount {
  std::optional<std::int64_t> number;  // without a bound, as what it is counted from
  std::int64_t accelerators = 0;       // of the container
  std::string_view word = "auto";      // or "gpu"

  std::string to_string() const {
    return number ? std::to_string(process_count(*number)) : std::string(word);
  }
  // One accelerator, or one process. Both of these can be true: several processes may share one
  // accelerator (Kubeflow Trainer, plugins/torch).
  bool is_single_device() const { return accelerators == 1 || (number && *number == 1); }
  bool is_several() const { return number ? *number > 1 : accelerators > 1; }
};

// The number or word of the job, else that of its runtime.
std::optional<IntOrString> desired_processes(const Draft& draft, const TorchPolicy& policy);

// From the container as it will run. A `desired` number and "gpu" stay as they are, and so does
// "auto", the default, where the container has accelerators that torchrun finds; of others it gets
// the number. Otherwise, and for "cpu": one process per CPU (rounded up, requests before limits, at
// least one).
ProcessCount count_processes(const std::optional<IntOrString>& desired, const kube::Json& container,
                             const DeviceRules& devices);

}  // namespace trainer::pipeline
