#include "runtimes/plugins/mpi/command_line.hh"

#include <algorithm>
#include <array>

namespace trainer::pipeline::mpi {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_mpirun(std::string_view word) {
  const std::string_view name = base_name(word);
  return name.starts_with("mpirun") || name.starts_with("mpiexec") || name == "orterun" ||
         name == "prterun";
}

bool runs_scripts(std::string_view word) {
  static constexpr std::array<std::string_view, 5> kInterpreters = {"sh", "bash", "dash", "ash",
                                                                    "zsh"};
  return std::ranges::find(kInterpreters, base_name(word)) != kInterpreters.end();
}

// Programs that run what follows them, or a script among their arguments.
bool runs_its_arguments(std::string_view word) {
  static constexpr std::array<std::string_view, 8> kWrappers = {
      "env", "exec", "timeout", "nice", "numactl", "stdbuf", "tini", "dumb-init"};
  return runs_scripts(word) || std::ranges::find(kWrappers, base_name(word)) != kWrappers.end();
}

bool is_name_start(char c) {
  return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// The words of a script, as far as this needs them: the text between blanks, quotes and operators.
std::vector<std::string_view> tokens_of(const std::vector<std::string_view>& words) {
  constexpr std::string_view kSeparators = " \t\n\\\"'`;|&()";
  std::vector<std::string_view> tokens;
  for (const std::string_view word : words)
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t end = std::min(word.find_first_of(kSeparators, at), word.size());
      if (end > at) tokens.push_back(word.substr(at, end - at));
      at = end + 1;
    }
  return tokens;
}

// OpenMPI 4 ends with an error where a list of variables meets one of these.
bool is_about_variables(std::string_view token) {
  return token == "-tune" || token == "--tune" || token.find("mca_base_env") != token.npos;
}

}  // namespace

CommandLine read_command_line(const std::vector<std::string_view>& words) {
  CommandLine line;
  const std::vector<std::string_view> tokens = tokens_of(words);
  if (tokens.empty()) return line;
  const bool is_in_sight = is_mpirun(tokens[0]) || (runs_its_arguments(tokens[0]) &&
                                                    std::ranges::any_of(tokens, is_mpirun));
  if (!is_in_sight) return line;
  line.start = CommandLine::Start::kMpirun;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_about_variables(tokens[i])) line.start = CommandLine::Start::kExports;
    if (i == 0 || i + 1 == tokens.size() || (tokens[i] != "-x" && tokens[i] != "--x")) continue;
    // `set -x` and `bash -x` trace a script.
    if (tokens[i - 1] == "set" || runs_scripts(tokens[i - 1]) || !is_name_start(tokens[i + 1][0]))
      continue;
    line.start = CommandLine::Start::kExports;
    line.exported.emplace(tokens[i + 1].substr(0, tokens[i + 1].find('=')));
  }
  return line;
}

}  // namespace trainer::pipeline::mpi
