// `trainer completion bash` prints a script for bash, and so for zsh. At each completion the script
// calls `trainer __complete bash WORDS...`, which prints the words that may come next.
#pragma once

#include <string>
#include <vector>

#include "controller/cli/completion.hh"

namespace trainer {

// Prints the script for "bash" or "zsh".
int run_completion(const std::string& interpreter, Console& console);

// The words are "bash" or "zsh" and those of the command line after the program's name. Prints one
// candidate a line, with its description after a tab; ":files" or ":dirs" means all names of files
// or directories. The cluster is asked for jobs and namespaces, for a short time. Prints no errors.
int answer_completion(const CLI::App& app, const std::vector<std::string>& words,
                      const Registry& registry, Console& console);

}  // namespace trainer
