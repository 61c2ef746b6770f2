// This is the command line of `trainer controller`.
#pragma once

#include <string>

#include "controller/cli/common_flags.hh"
#include "controller/config/options.hh"

namespace trainer {

// The parser fills this; it outlives the parse and the run.
struct ControllerFlags {
  ControllerOptions options;
  std::string jobset_controller_mode;
  std::string log_format = "text";
  std::string zap_level;
  std::string zap_encoder;
};

// Adds `controller`, also with the flags of upstream's managers.
void add_controller(CLI::App& app, ControllerFlags& flags, Commands& commands);

}  // namespace trainer
