// These are a TrainJob's settings about its failures; a runtime sets the defaults of its jobs.
// Extensions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/jobset.hh"
#include "kube/model/json.hh"

namespace trainer {

// The members but `processRestarts` are JobSet's. An absent member has the runtime's value.
struct TrainJobFailurePolicy {
  std::optional<std::int32_t> maxRestarts;
  std::optional<std::int32_t> maxDisruptionRestarts;
  std::optional<std::int32_t> processRestarts;  // by torchrun, in the pods that exist
  std::vector<FailurePolicyRule> rules;         // all of them, or none
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
