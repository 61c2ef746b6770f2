// The JobSet gets the failure policy of the job and of its runtime's runPolicy. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Merges runPolicy.failurePolicy of the runtime, then the job's own failurePolicy, member by member
// into the failurePolicy of the template; later ones win. If one of them exists, the JobSet also
// gets the annotation kept-on-restart. It names the replicated jobs whose Jobs a restart keeps
// (docs/decisions/0050). Without them nothing changes.
void merge_failure_policy(Draft& draft);

// An annotation of a JobSet in whose pods torchrun restarts processes: how often on each node.
inline constexpr std::string_view kProcessRestartsKey = "trainer.kubeflow.org/process-restarts";

inline constexpr std::string_view kProcessRestartsPath = "spec.failurePolicy.processRestarts";

// Returns processRestarts of the runtime's runPolicy, else 0.
std::int32_t process_restarts_by_default(const Runtime& runtime);

// Returns processRestarts of the job, else that of its runtime, else 0.
std::int32_t process_restarts_asked_for(const Draft& draft);

// Returns the error of a job that asks for processRestarts of a runtime without mlPolicy.torch.
std::optional<kube::FieldError> check_process_restarts_without_torch(const Draft& draft);

// Returns the errors in the rules of the policy at `path`: a JobSet of these jobs would be refused
// for them, or a pattern would find nothing.
kube::FieldErrors check_failure_rules(const std::vector<FailurePolicyRule>& rules,
                                      const std::vector<ReplicatedJob>& jobs,
                                      const std::string& path);

}  // namespace trainer::pipeline
