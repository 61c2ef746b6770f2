#include "controller/cli/run_flags.hh"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "controller/cli/common_flags.hh"

namespace trainer {
namespace {

// The words after `--` are no arguments that CLI11 knows of.
struct UsageWithCommand : CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    usage.erase(usage.find_last_not_of('\n') + 1);
    return usage + " [-- COMMAND...]\n";
  }
};

}  // namespace

void add_job_flags(CLI::App& command, JobFlags& flags) {
  constexpr int kMost = 100'000;
  command.formatter(std::make_shared<UsageWithCommand>());
  command.add_option("--runtime", flags.runtime,
                     "ClusterTrainingRuntime, or TrainingRuntime/NAME; default: "
                     "torch-distributed for Python");
  command
      .add_option("--nodes", flags.nodes, "Number of nodes; default: the runtime's or the file's")
      ->check(CLI::Range(1, kMost));
  command
      .add_option("--procs", flags.procs,
                  "Number of processes of each node; default: the runtime's or the file's")
      ->check(CLI::Range(1, kMost));
  command.add_option("--gpus", flags.gpus, "Number of GPUs of each node (nvidia.com/gpu)")
      ->check(CLI::Range(1, kMost));
  command.add_option("--queue", flags.queue, "Kueue's LocalQueue in which the job waits");
  command.add_option("--code", flags.code,
                     "Folder that becomes the working directory, without what .gitignore and "
                     ".trainerignore name");
  command.add_option("--env", flags.env, "NAME=VALUE: a variable of the command; repeatable")
      ->take_all()
      ->type_size(1)
      ->allow_extra_args(false);
  command.add_option("--name", flags.name, "Name of the job; default: a random one");
}

void add_run_mode(CLI::App& command, RunMode& mode) {
  CLI::Option* const dry_run = command.add_flag("--dry-run", mode.is_dry_run,
                                                "Print what would be created, and create nothing");
  add_output(command, mode.format, {"yaml", "json"});
  command.get_option("--output")->needs(dry_run);
  command.add_flag("-y,--yes", mode.is_confirmed, "Do not ask before the start");
  command.add_flag("-d,--detach", mode.is_detached, "Do not wait for the end");
  command.add_flag("--watch", mode.is_watched,
                   "Start the command again when a file of --code changes, in its pods where "
                   "that is possible");
}

kube::Result<void> check_watch(const JobFlags& job, const RunMode& mode) {
  if (!mode.is_watched) return {};
  if (job.code.empty())
    return kube::fail(kube::ErrorCode::kInvalid,
                      "--watch needs --code: name the folder that is watched");
  if (mode.is_detached || mode.is_dry_run)
    return kube::fail(kube::ErrorCode::kInvalid,
                      "--watch and {} exclude each other: leave one out, since edits are seen "
                      "while the command runs",
                      mode.is_detached ? "--detach" : "--dry-run");
  return {};
}

std::vector<std::string> take_command(std::vector<std::string>& words) {
  const bool is_run = !words.empty() && words[0] == "run";
  const bool is_local_run = words.size() > 1 && words[0] == "local" && words[1] == "run";
  const auto mark = std::ranges::find(words, "--");
  if (mark == words.end() || !(is_run || is_local_run)) return {};
  std::vector<std::string> command(mark + 1, words.end());
  words.erase(mark, words.end());
  return command;
}

}  // namespace trainer
