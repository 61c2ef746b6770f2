// An edit of the folder of `--code`, and the scripts that bring it into pods. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/code_pack.hh"

namespace trainer {

// Returns the files and links that were added, edited or removed, sorted. Files that Python and
// editors write beside the code (`__pycache__`, `.train.py.swp`, `train.py~`) do not count.
std::vector<std::string> changed_paths(const std::vector<CodeEntry>& before,
                                       const std::vector<CodeEntry>& after);
// Returns "2 files changed (train.py, model.py)"; the text names three of them at most.
std::string change_text(const std::vector<std::string>& paths);

// Two scripts for `sh -c`, with the working directory as the first word behind them, and the bytes
// of their standard input as the second. The first one keeps the compressed tar of its input beside
// the code, and ends the processes of the command: torchrun at once, others by SIGTERM, and after a
// second by SIGKILL. It ends with an error if the pod's command is not one that is watched.
std::string_view stop_script();
// The second one carries out its input, which is apply_script().
std::string_view begin_script();
// Removes what the new code has no more, unpacks the new code, and lets the command begin. Files
// that the job has written stay.
std::string apply_script(const std::vector<CodeEntry>& before, const std::vector<CodeEntry>& after,
                         std::uint64_t round);

}  // namespace trainer
