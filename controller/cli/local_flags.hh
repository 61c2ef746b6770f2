// The command line of `trainer local`.
#pragma once

#include <functional>
#include <map>

#include "controller/cli/local.hh"

namespace CLI {
class App;
}

namespace trainer {

// What runs where a subcommand was chosen.
using Command = std::function<int(Console&)>;
using Commands = std::map<const CLI::App*, Command>;

// Of all its subcommands; outlives the parse and the run.
struct LocalFlags {
  std::string state;
  LocalUpOptions up;
  LocalRunOptions run;
  LocalStopOptions stop;
  LocalLogsOptions logs;
  LocalStatusOptions status;
};

// Adds `local` with its subcommands, but for the options of `local logs`, which are those of
// `logs`: the result.
CLI::App* add_local(CLI::App& app, LocalFlags& flags, Commands& commands);

}  // namespace trainer
