// How lines of logs, and what is said beside them, are printed.
#pragma once

#include <string>
#include <string_view>

#include "controller/cli/commands.hh"
#include "controller/cli/log_merge.hh"

namespace trainer {

// A text of a cluster's object, without control characters, for a line of standard error.
std::string plain_text(std::string_view text);
// A text of a log: a terminal gets no control characters of it, a pipe gets its bytes.
std::string text_for_output(const std::string& text, const Console& console);
// Prints each line after its pod's place. `console` outlives the result.
PrintLine log_printer(const LogsOptions& options, Console& console);

}  // namespace trainer
