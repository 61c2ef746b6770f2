// `trainer local run -- COMMAND` makes a job of a command, by the flags of `trainer run`.
#pragma once

#include "controller/cli/local.hh"
#include "kube/client/api_client.hh"

namespace trainer {

// Errors: neither files nor a command, or both; flags that are for the other one.
kube::Result<void> check_local_run(const LocalRunOptions& options);

// The folder of --code itself is the working directory, so that edits count at once. Errors: there
// is no such folder, or no such runtime.
kube::Task<kube::Result<kube::Json>> job_of_command(kube::ApiClient& client, JobFlags flags,
                                                    std::string ns);
// Prints the job that job_of_command() would make with the built-in runtimes, and returns the exit
// code.
int print_job_of_command(const LocalRunOptions& options, Console& console);

}  // namespace trainer
