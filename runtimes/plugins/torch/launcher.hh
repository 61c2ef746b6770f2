// The processes of all nodes become one training by mlPolicy.torch.launcher, an extension.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// This annotation of a TrainJob is its launcher, instead of mlPolicy.torch.launcher of the runtime.
inline constexpr std::string_view kLauncherAnnotation = "trainer.kubeflow.org/torch-launcher";

enum class Launcher {
  kNone,      // upstream's behaviour: the command has to start torchrun
  kTorchrun,  // a Python command is started by torchrun
  kEnv,       // the command itself calls init_process_group()
};

// Returns the job's annotation kLauncherAnnotation, else the runtime's field. Errors: an annotation
// with another value.
tl::expected<Launcher, kube::FieldError> launcher_of(const TrainJob& job,
                                                     const TorchPolicy& policy);

// This is the command line of the trainer's container: the TrainJob's if it has one, else the
// runtime's.
struct CommandLine {
  std::vector<std::string> command;  // empty: the image's own command, about which nothing is known
  std::vector<std::string> args;
};
CommandLine command_line_of(const Draft& draft);

enum class Starts {
  kUnknown,    // the image's own command
  kPython,     // one Python process
  kProcesses,  // torchrun, accelerate and the like, or sh or bash, which may start one
  kProgram,    // another program
};
Starts what_starts(const CommandLine& line);

// These are options of torchrun, which win over PET_* variables. There are none if the command line
// does not start torchrun itself.
struct TorchrunOptions {
  bool is_standalone = false;
  std::optional<std::int32_t> nodes;  // --nnodes, if it is one number
};
TorchrunOptions torchrun_options_of(const CommandLine& line);

// Returns the command, without its arguments, by which torchrun starts this Python command.
std::vector<std::string> command_by_torchrun(const CommandLine& line);

// Warns about a command that would run one training in each node or process, instead of one in all
// of them, and about a launcher that was asked for and changes nothing.
void warn_about_command(const Draft& draft, const TorchPolicy& policy,
                        std::vector<std::string>& warnings);

}  // namespace trainer::pipeline
