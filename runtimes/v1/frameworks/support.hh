// Several frameworks need these functions. Internal to runtimes/v1/frameworks.
#pragma once

#include <string>
#include <string_view>

#include "runtimes/v1/environment.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {

inline constexpr std::string_view kMaster = "Master";
inline constexpr std::string_view kWorker = "Worker";

// The containers of a pod with a spec, without its init containers.
kube::Json::Array& containers_of(kube::Json& pod);
void add_to_all_containers(const Environment& env, kube::Json& pod);

const ReplicaSpec* find_spec(const V1Job& job, std::string_view role);
// `job` has its defaults; negative numbers count as 0.
std::int32_t replicas_of(const V1Job& job, std::string_view role);
// Returns the port of the framework's name in the required container of a role.
std::int64_t port_of(const Framework& framework, const V1Job& job, std::string_view role);
// Returns the name of a pod and its Service: "p-worker-0".
std::string host(const V1Job& job, std::string_view role, std::int32_t index = 0);

// Framework::measure() needs it. Returns how many digits the numbers below `count` have beyond one
// each.
std::int64_t further_digits(std::int64_t count);
// The size that kube::exec_bytes() finds for a variable whose value has this many bytes.
std::int64_t bytes_of_variable(std::string_view name, std::int64_t bytes);

// "PyTorchJob p is failed because 1 Worker replica(s) failed."
std::string failure_text(const V1JobContext& context, const RoleState& role, std::string_view what);
// PyTorchJob, PaddleJob and JAXJob: a Master decides, else all workers, or any of them
// (Framework::any_worker_succeeds).
void decide_by_master_or_workers(V1JobContext& context);
// XGBoostJob and MPIJob: the role `decider` decides about success; a failed pod of any role fails
// the job, but under ExitCode sets the condition Restarting. `failed_reason`: `reason` of fail().
void decide_by_one_role(V1JobContext& context, std::string_view decider,
                        std::string_view failed_reason);

// A Master must have `replicas: 1`, set explicitly.
void check_single_master(const Framework& framework, const V1Job& job, kube::FieldErrors& errors);

}  // namespace trainer::v1
