// `trainer local` runs TrainJobs on this machine, without a cluster. Each subcommand takes its
// options as a struct and returns an exit code.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/cli/commands.hh"

namespace trainer {

struct LocalUpOptions {
  std::string state;  // directory
  bool is_foreground = false;
  bool has_node = true;               // else pods stay Pending: an API server for tests
  bool has_controller = true;         // else another controller may drive it
  std::optional<int> tier;            // nullopt: the best tier of the machine
  std::vector<std::string> mounts;    // "DIR:/PATH", in every pod
  std::vector<std::string> capacity;  // "NAME=AMOUNT": replaces the amount that was found
  std::string audit;                  // file
  std::int64_t idle_seconds = 0;      // seconds without work, after which it ends; 0: it stays
};
// Starts the daemon, or says that it is up. In the foreground this process is the daemon.
int run_local_up(const LocalUpOptions& options, Console& console);

struct LocalRunOptions {
  std::string state;
  std::string ns;                  // the namespace of objects without one; empty: the kubeconfig's
  std::vector<std::string> files;  // "-": standard input
  // Without files a job is made of these; with files, nodes and procs replace those of the files.
  JobFlags job;
  std::vector<std::string> mounts;  // "DIR:/PATH", in these jobs
  bool is_fitted = false;           // requests are cut to what the machine has
  RunMode mode;                     // local mode never asks
};
// Applies the objects of the files and follows their TrainJobs, one after the other, to the end.
// kExitDone says that all are Complete. The daemon is started if need be. SIGINT or SIGTERM suspend
// the jobs, a second one kills their pods.
int run_local_run(const LocalRunOptions& options, const Registry& registry, Console& console);

struct LocalStopOptions {
  std::string state;
  std::string ns;
  std::vector<std::string> jobs;
  bool is_killed = false;  // pods get no time to end
};
// Suspends jobs, and waits until their pods are gone.
int run_local_stop(const LocalStopOptions& options, Console& console);

struct LocalLogsOptions {
  std::string state;
  LogsOptions logs;
};
int run_local_logs(const LocalLogsOptions& options, const Registry& registry, Console& console);

struct LocalUiOptions {
  std::string state;
  UiOptions ui;
};
int run_local_ui(const LocalUiOptions& options, const Registry& registry, Console& console);

// Suspends the jobs that run, then ends the daemon. Its stored state stays.
int run_local_down(const std::string& state, Console& console);

struct LocalStatusOptions {
  std::string state;
  OutputFormat format = OutputFormat::kText;
};
int run_local_status(const LocalStatusOptions& options, Console& console);

// Prints assignments for `eval`, with which kubectl and the SDK use local mode.
int run_local_env(const std::string& state, Console& console);

}  // namespace trainer
