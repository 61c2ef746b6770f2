// Several subcommands have these flags.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/cli/commands.hh"

namespace trainer {

// It runs if a subcommand was chosen.
using Command = std::function<int(Console&)>;
using Commands = std::map<const CLI::App*, Command>;

// Adds -o, with these formats.
void add_output(CLI::App& app, OutputFormat& output, const std::vector<std::string>& formats);

// Adds the files to read, as words or with -f, which users of kubectl type.
void add_files(CLI::App& app, std::vector<std::string>& files);

// Adds the words that find_target() reads.
void add_target(CLI::App& app, std::vector<std::string>& target);

void add_cluster(CLI::App& app, ClusterOptions& cluster);

// Adds those of `logs`, except the cluster's.
void add_logs_flags(CLI::App& command, LogsOptions& logs);

// Adds those of `ui`, except the cluster's.
void add_ui_flags(CLI::App& command, UiOptions& ui);

// Refuses a value for which `is_good` is false, with these words after it.
template <class IsGood>
CLI::Validator check_by(const IsGood& is_good, std::string problem) {
  const auto check = [is_good, problem = std::move(problem)](const std::string& text) {
    return is_good(text) ? std::string() : "\"" + text + "\" " + problem;
  };
  return CLI::Validator(check, "");
}

}  // namespace trainer
