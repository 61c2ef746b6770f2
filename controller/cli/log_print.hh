// Lines of logs, and messages about them, are printed in this way.
#pragma once

#include <string>
#include <string_view>

#include "controller/cli/commands.hh"
#include "controller/cli/log_merge.hh"

namespace trainer {

// Returns a text from an object of the cluster, without control characters, for a line of standard
// error.
std::string plain_text(std::string_view text);
// Returns a text from a log: without control characters on a terminal, and unchanged into a pipe.
std::string text_for_output(const std::string& text, const Console& console);
// Prints each line after its pod's place. `console` outlives the result.
PrintLine log_printer(const LogsOptions& options, Console& console);

}  // namespace trainer
