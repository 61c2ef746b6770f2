// `trainer local` asks the API server for this, object by object.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"

namespace trainer {

// Creates the built-in runtimes that are missing. A runtime that was edited is not changed.
kube::Task<kube::Result<void>> create_missing_runtimes(kube::ApiClient& client);

// Returns nullopt if local mode serves no such kind.
std::optional<kube::Resource> find_local_resource(const Registry& registry,
                                                  const kube::Json& object);

// Returns the runtime that a TrainJob names. Errors name it, and say how the existing ones are
// listed.
kube::Task<kube::Result<kube::Json>> get_runtime_of(kube::ApiClient& client, kube::Json job);

// Errors (kConflict): a TrainJob of this name has not ended.
kube::Task<kube::Result<void>> check_job_may_run(kube::ApiClient& client, kube::ObjectKey key);
// Deletes the TrainJob of this name, if there is one, and waits until all that it owns is gone.
kube::Task<kube::Result<void>> delete_job(kube::ApiClient& client, kube::ObjectKey key);
// Returns the job's key, also if the server made the name.
kube::Task<kube::Result<kube::ObjectKey>> create_job(kube::ApiClient& client, kube::Json job);

// Asks the job's processes to end: the result is a suspended job. A job that has ended is not
// changed: if it were suspended, it could not be run again. Errors (kNotFound): there is no such
// job.
kube::Task<kube::Result<void>> suspend_job(kube::ApiClient& client, kube::ObjectKey key);
// Ends the pods at once.
kube::Task<kube::Result<void>> kill_pods(kube::ApiClient& client, kube::ObjectKey key);
// Returns whether a pod of the job runs; a pod of a suspended job has a grace period.
kube::Task<kube::Result<bool>> has_running_pods(kube::ApiClient& client, kube::ObjectKey key);
using Say = std::function<void(std::string_view sentence)>;
// Waits until no pod of the job runs, and says so if that takes longer. Errors (kTimeout): a pod
// still runs half a minute after its grace period.
kube::Task<kube::Result<void>> wait_until_pods_end(kube::ApiClient& client, kube::ObjectKey key,
                                                   Say say);
// Asks jobs to end, or kills their pods if `is_killed`, and waits until all pods have ended.
// Errors: the first one; the other jobs are stopped nevertheless.
kube::Task<kube::Result<void>> stop_jobs(kube::ApiClient& client, std::vector<kube::ObjectKey> jobs,
                                         bool is_killed, Say say);

kube::Task<kube::Result<std::vector<kube::Json>>> list_jobs(kube::ApiClient& client);
// Returns whether the job is neither finished nor suspended.
bool is_running(const kube::Json& job);

}  // namespace trainer
