// The arguments of the Deployments of upstream's managers work here, since these flags are
// accepted.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "controller/config/options.hh"

namespace trainer {

// Adds those of the Training Operator's manager (Training Operator, cmd/training-operator.v1).
void add_training_operator_flags(CLI::App& command, ControllerOptions& options);

// Completes the words for CLI11: an --enable-scheme without a value means all kinds. If the program
// is called as /manager without a subcommand or --config, it is the Training Operator's manager
// (that of Trainer v2 has a configuration file). Then it returns true, with the subcommand
// `controller` put in front, and long flags of one dash, which Go also accepts, changed to two.
bool use_upstream_words(const CLI::App& app, std::string_view program,
                        std::vector<std::string>& words);

}  // namespace trainer
