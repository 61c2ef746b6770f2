// The command line. main() calls run_cli() and nothing else.
#pragma once

namespace trainer {

// What the program exits with, as --help says.
enum ExitCode : int {
  kExitDone = 0,
  // The input, or the cluster's answer, says no; the job that was asked about has failed; or the
  // output could not be written.
  kExitRefused = 1,
  kExitUsage = 2,      // the command line itself is wrong
  kExitNoCluster = 3,  // the cluster cannot be reached, or answers with an error
};

// Parses the command line, runs the subcommand and answers its exit code. Called as
// `kubectl-trainer` it speaks of itself as `kubectl trainer`. Options of the controller without a
// subcommand start the controller, as upstream's Deployment does. Concurrency: the main thread,
// once.
int run_cli(int argc, char** argv);

}  // namespace trainer
