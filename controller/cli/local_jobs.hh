// What `trainer local` asks of the API server, object by object.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"

namespace trainer {

// Creates the built-in runtimes that are missing: one that was edited stays as it is.
kube::Task<kube::Result<void>> create_missing_runtimes(kube::ApiClient& client);

// nullopt where local mode serves no such kind.
std::optional<kube::Resource> find_local_resource(const Registry& registry,
                                                  const kube::Json& object);

// The runtime that a TrainJob names. Errors name it, and how those that exist are listed.
kube::Task<kube::Result<kube::Json>> get_runtime_of(kube::ApiClient& client, kube::Json job);

// Errors (kConflict): a TrainJob of this name has not ended.
kube::Task<kube::Result<void>> check_job_may_run(kube::ApiClient& client, kube::ObjectKey key);
// Deletes the TrainJob of this name, where there is one, and waits until all that it owns is gone.
kube::Task<kube::Result<void>> delete_job(kube::ApiClient& client, kube::ObjectKey key);
// Its key, also where the server made the name.
kube::Task<kube::Result<kube::ObjectKey>> create_job(kube::ApiClient& client, kube::Json job);

// Asks the job's processes to end: what is left is a suspended job. One that has ended stays as it
// is: suspended, it could not be run again. Errors (kNotFound): there is no such job.
kube::Task<kube::Result<void>> suspend_job(kube::ApiClient& client, kube::ObjectKey key);
// Ends them at once.
kube::Task<kube::Result<void>> kill_pods(kube::ApiClient& client, kube::ObjectKey key);
// Whether a pod of the job runs; one of a suspended job has a grace period.
kube::Task<kube::Result<bool>> has_running_pods(kube::ApiClient& client, kube::ObjectKey key);
using Say = std::function<void(std::string_view sentence)>;
// Waits until no pod of the job runs, and says so where that takes longer. Errors (kTimeout): a pod
// still runs half a minute after its grace period.
kube::Task<kube::Result<void>> wait_until_pods_end(kube::ApiClient& client, kube::ObjectKey key,
                                                   Say say);
// Asks jobs to end, `is_killed`: kills their pods, and waits until all pods have ended. Errors: the
// first one; the other jobs are stopped nevertheless.
kube::Task<kube::Result<void>> stop_jobs(kube::ApiClient& client, std::vector<kube::ObjectKey> jobs,
                                         bool is_killed, Say say);

kube::Task<kube::Result<std::vector<kube::Json>>> list_jobs(kube::ApiClient& client);
// Neither finished nor suspended.
bool is_running(const kube::Json& job);

}  // namespace trainer
