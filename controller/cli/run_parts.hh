// These parts of a job are the same for `trainer run` and `trainer local run -- COMMAND`.
#pragma once

#include <string>
#include <vector>

#include "controller/cli/run_job.hh"
#include "kube/client/api_client.hh"

namespace trainer {

// Returns --name, or a random one.
std::string name_of_run(const JobFlags& flags);

struct FoundRuntime {
  RuntimeChoice choice;
  bool is_torch = false;
  bool is_known = true;  // false: it is not built in, and no cluster was asked
};
// Asks the API server. Errors (kNotFound) list the ClusterTrainingRuntimes that there are. If the
// user may not read them, this is find_builtin_runtime().
kube::Task<kube::Result<FoundRuntime>> find_runtime(kube::ApiClient& client, JobFlags flags,
                                                    std::string ns);
// Knows the built-in runtimes only.
kube::Result<FoundRuntime> find_builtin_runtime(const JobFlags& flags);

}  // namespace trainer
