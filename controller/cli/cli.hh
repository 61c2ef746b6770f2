// The command line. main() calls run_cli() and nothing else.
#pragma once

namespace trainer {

// The exit codes, as --help lists them.
enum ExitCode : int {
  kExitDone = 0,
  // The input was refused, by the program or the cluster; the job that was asked about has failed;
  // or the output could not be written.
  kExitRefused = 1,
  kExitUsage = 2,      // the command line itself is wrong
  kExitNoCluster = 3,  // the cluster cannot be reached, or answers with an error
};

// Parses the command line, runs the subcommand and returns its exit code. Called as
// `kubectl-trainer`, the program's messages name it `kubectl trainer`. Options of the controller
// without a subcommand start the controller, as upstream's Deployment does. Concurrency: the main
// thread, once.
int run_cli(int argc, char** argv);

}  // namespace trainer
