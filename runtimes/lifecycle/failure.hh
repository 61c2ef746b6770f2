// The status of a job of any kind names its first failure: which pod, and how
// (docs/decisions/0001). Pure.
#pragma once

#include <string>

#include "api/trainjob.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

// `pod` has a failure.
FirstFailure record_failure(const PodView& pod);

// "pod j-node-0-3-x7k2p (node 3) on gpu-17: container node ended with exit code 137 (OOMKilled)",
// without its output.
std::string describe(const FirstFailure& failure);

}  // namespace trainer
