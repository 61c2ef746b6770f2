// These subcommands list jobs of all kinds, change one, await one, or copy one. Each takes its
// options as a struct and returns an exit code.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "controller/cli/commands.hh"

namespace trainer {

struct GetOptions {
  ClusterOptions cluster;
  bool has_all_namespaces = false;
  bool is_watched = false;  // print each change, too, until the command is interrupted
  std::string selector;     // a label selector
  std::string format;       // "", wide, name, json or yaml
};
// Prints a table of jobs. kExitRefused says that the user may list none of their kinds.
int run_get(const GetOptions& options, const Registry& registry, Console& console);

struct JobOptions {
  ClusterOptions cluster;
  std::vector<std::string> target;  // the words for find_target()
};
// Sets or clears `suspend` of a job; of one in a queue the queue is asked, by its Workload.
int run_suspend(const JobOptions& options, const Registry& registry, Console& console);
int run_resume(const JobOptions& options, const Registry& registry, Console& console);

struct CancelOptions {
  JobOptions job;
  bool is_confirmed = false;  // ask no question
};
// Ends a job by deleting it.
int run_cancel(const CancelOptions& options, const Registry& registry, Console& console);

struct WaitOptions {
  JobOptions job;
  std::string for_what = "finished";  // see read_wait_goal()
  std::optional<std::chrono::milliseconds> limit;
};
// Waits until the job is in this state. kExitRefused: the time is over, the job is gone, or it can
// never be in this state any more.
int run_wait(const WaitOptions& options, const Registry& registry, Console& console);

struct RerunOptions {
  JobOptions job;
  std::string name;         // "": the first free one of NAME-r2, NAME-r3, ...
  bool is_dry_run = false;  // print the copy, and create nothing
  OutputFormat format = OutputFormat::kYaml;
};
// Creates a copy of a job under another name.
int run_rerun(const RerunOptions& options, const Registry& registry, Console& console);

}  // namespace trainer
