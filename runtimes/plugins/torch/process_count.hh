// How many processes torchrun starts on a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kube/model/json.hh"

namespace trainer::pipeline {

// Either a number, or torchrun's own "auto": one process a device.
struct ProcessCount {
  std::optional<std::int64_t> number;
  std::int64_t accelerators = 0;  // of the container

  std::string to_string() const { return number ? std::to_string(*number) : "auto"; }
  // One device, or one process for all there is. Several processes may share the one device, so
  // both of these can hold (Kubeflow Trainer, plugins/torch).
  bool is_single_device() const { return accelerators == 1 || (number && *number == 1); }
  bool is_several() const { return number ? *number > 1 : accelerators > 1; }
};

// From the container as it will run: `desired` if the job says so, else auto with accelerators,
// else one a CPU (rounded up, requests before limits, at least one).
ProcessCount count_processes(std::optional<std::int32_t> desired, const kube::Json& container);

}  // namespace trainer::pipeline
