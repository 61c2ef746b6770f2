// torchrun starts the processes of a node again in their pods (docs/users/restarts.md). An
// extension.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/field_error.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Returns how often torchrun starts the processes of a node again, if the job or else its runtime
// says so: nullopt for 0, and for a launcher or a command that cannot. The result is valid for a
// runtime with mlPolicy.torch.
std::optional<std::int32_t> process_restarts_of(const Draft& draft, const TorchPolicy& policy);

// Makes torchrun restart processes, with the rendezvous that allows it: the other variables of the
// rendezvous stay, and have no effect on it. `host` is the name of index 0 within its namespace.
void inject_process_restarts(ContainerEdit& container, const Draft& draft, const std::string& host,
                             std::int32_t restarts, bool is_elastic);

// Refuses a job that asks for these restarts and cannot have them, and variables of the job that
// contradict them.
void check_process_restarts(const Draft& draft, const TorchPolicy& policy,
                            kube::FieldErrors& errors);

// Warns about restarts that have no effect.
void warn_about_process_restarts(const Draft& draft, const TorchPolicy& policy,
                                 std::vector<std::string>& warnings);

}  // namespace trainer::pipeline
