// How many processes torchrun starts on a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/int_or_string.hh"
#include "kube/model/json.hh"

namespace trainer::pipeline {

// Either a number, or a word that torchrun knows: one process a device.
struct ProcessCount {
  std::optional<std::int64_t> number;
  std::int64_t accelerators = 0;  // of the container
  std::string_view word = "auto";

  std::string to_string() const { return number ? std::to_string(*number) : std::string(word); }
  // One device, or one process for all there is. Several processes may share the one device, so
  // both of these can hold (Kubeflow Trainer, plugins/torch).
  bool is_single_device() const { return accelerators == 1 || (number && *number == 1); }
  bool is_several() const { return number ? *number > 1 : accelerators > 1; }
};

// From the container as it will run: the number that is `desired`; "gpu", which is left to
// torchrun; "auto", the default, with accelerators; else, and for "cpu", one a CPU (rounded up,
// requests before limits, at least one).
ProcessCount count_processes(const std::optional<IntOrString>& desired,
                             const kube::Json& container);

}  // namespace trainer::pipeline
