// What several frameworks need. Internal to runtimes/v1/frameworks.
#pragma once

#include <string>
#include <string_view>

#include "runtimes/v1/policies.hh"

namespace trainer::v1 {

inline constexpr std::string_view kMaster = "Master";
inline constexpr std::string_view kWorker = "Worker";

// Appends; a name that is there already is not replaced, and the last one counts.
void append_env(kube::Json& container, std::string_view name, std::string value);
// The containers of a pod with a spec, without its init containers.
kube::Json::Array& containers_of(kube::Json& pod);

const ReplicaSpec* find_spec(const Job& job, std::string_view role);
// Of a job with defaults.
std::int32_t replicas_of(const Job& job, std::string_view role);
// The port of the framework's name in the required container of a role.
std::int32_t port_of(const Framework& framework, const Job& job, std::string_view role);
// The pod and Service "p-worker-0".
std::string host(const Job& job, std::string_view role, std::int32_t index = 0);

// "PyTorchJob p is failed because 1 Worker replica(s) failed."
std::string failure_text(const ReconcileContext& context, const RoleState& role,
                         std::string_view what);
// PyTorchJob, PaddleJob and JAXJob: a Master decides, else all workers, or any of them
// (Framework::any_worker_succeeds).
void decide_by_master_or_workers(ReconcileContext& context);
// XGBoostJob and MPIJob: the role `decider` decides about success; a failed pod of any role fails
// the job, but under ExitCode sets the condition Restarting. `failed_reason`: `reason` of fail().
void decide_by_one_role(ReconcileContext& context, std::string_view decider,
                        std::string_view failed_reason);

// A Master must have `replicas: 1`, set explicitly.
void check_single_master(const Framework& framework, const Job& job, kube::FieldErrors& errors);

}  // namespace trainer::v1
