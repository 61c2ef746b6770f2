// This is the command line of `trainer local`.
#pragma once

#include <string>

#include "controller/cli/common_flags.hh"
#include "controller/cli/local.hh"

namespace trainer {

// All its subcommands have these flags; they outlive the parse and the run.
struct LocalFlags {
  std::string state;
  LocalUpOptions up;
  LocalRunOptions run;
  LocalStopOptions stop;
  LocalLogsOptions logs;
  LocalStatusOptions status;
  LocalUiOptions ui;
};

// Adds `local` with its subcommands.
void add_local(CLI::App& app, LocalFlags& flags, Commands& commands);

}  // namespace trainer
