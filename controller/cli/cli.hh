// This is the command line. main() calls run_cli() and nothing else.
#pragma once

namespace trainer {

// --help lists these exit codes.
enum ExitCode : int {
  kExitDone = 0,
  // The program or the cluster refused the input; the job in question has failed, or waits
  // (`plan`); or the output could not be written.
  kExitRefused = 1,
  kExitUsage = 2,      // the command line itself is wrong
  kExitNoCluster = 3,  // the cluster cannot be reached, or answers with an error
  kExitNever = 4,      // `plan`: the job never fits
};

// Parses the command line, runs the subcommand and returns its exit code. If the program is called
// as `kubectl-trainer`, its messages name it `kubectl trainer`. Options of the controller without a
// subcommand start the controller, since upstream's Deployment has such arguments. Concurrency: the
// main thread, once.
int run_cli(int argc, char** argv);

}  // namespace trainer
