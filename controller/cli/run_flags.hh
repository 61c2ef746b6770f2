// `trainer run` and `trainer local run` have these flags.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "controller/cli/commands.hh"

namespace trainer {

// Adds those that describe a job.
void add_job_flags(CLI::App& command, JobFlags& flags);
// Adds --dry-run, -o, --yes, --detach and --watch.
void add_run_mode(CLI::App& command, RunMode& mode);
// Errors: --watch without --code, or with a flag that leaves nothing to watch.
kube::Result<void> check_watch(const JobFlags& job, const RunMode& mode);

// Removes the words behind `--`, and returns them, if the words call a subcommand that runs a
// command. CLI11 would take the first of them for a file of `local run`.
std::vector<std::string> take_command(std::vector<std::string>& words);

}  // namespace trainer
