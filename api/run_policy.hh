// What a TrainJob asks for its failures, and what a runtime gives its jobs as defaults. Extensions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/jobset.hh"
#include "kube/model/json.hh"

namespace trainer {

// In JobSet's terms. What is absent is the runtime's.
struct TrainJobFailurePolicy {
  std::optional<std::int32_t> maxRestarts;
  std::optional<std::int32_t> maxDisruptionRestarts;
  std::vector<FailurePolicyRule> rules;  // all of them, or none
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

// The names of the first two are those of Kubeflow Trainer's proposal (KEP-2899, pull request
// 3824).
struct RunPolicy {
  std::optional<std::int64_t> activeDeadlineSeconds;
  std::optional<std::int32_t> ttlSecondsAfterFinished;
  std::optional<TrainJobFailurePolicy> failurePolicy;
  kube::Json unknown;
  template <class D>
  static void describe(D& d);
};

}  // namespace trainer
