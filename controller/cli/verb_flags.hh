// The command line of the subcommands that list jobs, change one, await one, or copy one, and of
// `completion`.
#pragma once

#include <string>

#include "controller/cli/common_flags.hh"
#include "controller/cli/verbs.hh"

namespace trainer {

// It outlives the parse and the run.
struct VerbFlags {
  GetOptions get;
  JobOptions suspend;
  JobOptions resume;
  CancelOptions cancel;
  WaitOptions wait;
  RerunOptions rerun;
  std::string interpreter;
};

void add_verbs(CLI::App& app, VerbFlags& flags, Commands& commands);

}  // namespace trainer
