// The flags of `trainer run`, and of `trainer local run -- COMMAND`, become a TrainJob. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

struct JobFlags {
  std::vector<std::string> command;  // the words behind `--`
  std::string runtime;               // NAME, or TrainingRuntime/NAME; "": see choose_runtime()
  std::string name;                  // "": a random one
  std::string queue;
  std::string code;  // a folder
  std::optional<std::int32_t> nodes;
  std::optional<std::int32_t> procs;
  std::optional<std::int32_t> gpus;  // the GPUs of each node
  std::vector<std::string> env;      // "NAME=VALUE"
};

// Errors name the flag, its value and what to write instead.
kube::Result<void> check_job_flags(const JobFlags& flags);

struct RuntimeChoice {
  kube::Resource resource;
  std::string name;
};
// Returns the runtime that --runtime names.
RuntimeChoice named_runtime(const JobFlags& flags);
// Returns the runtime of `all`, the ClusterTrainingRuntimes of a cluster, for a command without
// --runtime: torch-distributed for Python, else the only one without a framework. Errors list all.
kube::Result<std::string> choose_runtime(const std::vector<std::string>& command,
                                         const std::vector<kube::Json>& all);
// Returns whether the command starts Python or torchrun.
bool is_python_command(const std::vector<std::string>& command);

// These parts of a job are not flags.
struct JobParts {
  kube::ObjectKey key;  // `ns` "": the one of who applies it
  RuntimeChoice runtime;
  bool is_torch = false;                // the runtime is one for torch
  std::vector<std::string> code_names;  // the ConfigMaps of --code
  std::string working_directory;        // "": that of the runtime, or of the code
  bool is_watched = false;              // the code may be replaced while the pods run
};
kube::Json make_job(const JobFlags& flags, const JobParts& parts);

// Returns "2 nodes, 4 processes a node, 1 GPU a node: python train.py".
std::string describe_job(const JobFlags& flags);

// Returns the exit status of a command that followed this TrainJob to its end: 0 for a Complete
// job, that of the first process that failed, 128 and its number after a signal, else 1.
int exit_status_of(const kube::Json& job);

}  // namespace trainer
