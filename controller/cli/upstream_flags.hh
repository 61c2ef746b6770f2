// The flags of upstream's managers, so that the arguments of their Deployments work here.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "controller/config/options.hh"

namespace trainer {

// Those of the Training Operator's manager (Training Operator, cmd/training-operator.v1).
void add_training_operator_flags(CLI::App& command, ControllerOptions& options);

// Completes the words for CLI11: an --enable-scheme without a value means all kinds. Called as
// /manager without a subcommand or --config, the program is the Training Operator's manager (that
// of Trainer v2 has a configuration file): returns true, with the subcommand `controller` put in
// front, and long flags of one dash, which Go takes too, changed to two.
bool use_upstream_words(const CLI::App& app, std::string_view program,
                        std::vector<std::string>& words);

}  // namespace trainer
