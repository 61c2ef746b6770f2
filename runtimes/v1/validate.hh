// These are the rules of admission of V1 jobs (Training Operator, pkg/webhooks; for MPIJobs its
// controller, mpi_validation.go). Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/model/field_error.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::v1 {

struct Verdict {
  kube::FieldErrors errors;
  std::vector<std::string> warnings;
};

// `job` is the stored or sent one, without defaults.
Verdict validate_create(const Framework& framework, const V1Job& job,
                        const Settings& settings = {});
// Checks the rules without those about the length of arguments and variables, and about numbers of
// processes: a job that ran before these were checked goes on.
Verdict validate_stored(const Framework& framework, const V1Job& job, const Settings& settings);
// runPolicy.managedBy cannot change; the rest is checked by the rules of creation. Errors that
// `before` has, too, do not count: such a job was scaled without the webhook, or is older than the
// rule, and it must be possible to suspend it.
Verdict validate_update(const Framework& framework, const V1Job& before, const V1Job& job,
                        const Settings& settings = {});

// `job` is one that validate_create() allows. A pod of each role is built.
std::vector<std::string> warnings_of(const Framework& framework, const V1Job& job,
                                     const Settings& settings = {});

// Returns why a job is refused that has more pods or containers than kMaxPods and its like, or
// whose pods would get more text than they can have (Framework::measure()); nullopt for others.
// Nothing is built for that. `job` may have its defaults or not.
std::optional<kube::FieldError> too_large(const Framework& framework, const V1Job& job,
                                          const Settings& settings);
// Returns how many bytes the controller adds to a pod of a role.
std::int64_t generated_bytes(const Framework& framework, const V1Job& job, const ReplicaSpec& spec,
                             const Settings& settings);

// "spec.pytorchReplicaSpecs[Worker]".
std::string role_path(const Framework& framework, std::string_view role);

}  // namespace trainer::v1
