#include "runtimes/plugins/mpi/command_line.hh"

#include <algorithm>
#include <array>
#include <span>

namespace trainer::pipeline::mpi {
namespace {

using Words = std::span<const std::string>;

// MPI's implementations and Debian's alternatives have these names for it. A script may be named
// `mpirun_wrapper.sh`, and its options are not visible.
bool is_mpirun(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "mpirun",        "mpiexec",      "mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich",
      "mpiexec.mpich", "mpirun.hydra", "mpiexec.hydra",  "orterun",         "prterun",
      "prun"};
  return std::ranges::find(kNames, name) != kNames.end();
}

bool is_shell(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "dash", "ash", "zsh"};
  return std::ranges::find(kShells, name) != kShells.end();
}

// A wrapper is a program that runs the command behind its options, or a word of the shell before a
// command.
struct Wrapper {
  std::string_view name;
  std::string_view with_value = {};  // the letters of options whose value is the next word
  std::size_t operands = 0;          // the number of words between the options and the command
};
constexpr std::array kWrappers = {Wrapper{"env", "uC"},
                                  Wrapper{"exec", "a"},
                                  Wrapper{"timeout", "ks", 1},
                                  Wrapper{"nice", "n"},
                                  Wrapper{"stdbuf", "ioe"},
                                  Wrapper{"numactl", "iwpPCmN"},
                                  Wrapper{"tini", "pe"},
                                  Wrapper{"dumb-init", "r"},
                                  Wrapper{"time"},
                                  Wrapper{"if"},
                                  Wrapper{"elif"},
                                  Wrapper{"then"},
                                  Wrapper{"else"},
                                  Wrapper{"while"},
                                  Wrapper{"until"},
                                  Wrapper{"do"},
                                  Wrapper{"!"},
                                  Wrapper{"{"}};

Words without_first(Words words, std::size_t count = 1) {
  return words.subspan(std::min(words.size(), count));
}

Words behind(const Wrapper& wrapper, Words words) {
  while (!words.empty() && words[0].starts_with('-')) {
    const std::string& option = words[0];
    const bool has_value =
        option.size() == 2 && wrapper.with_value.find(option[1]) != std::string_view::npos;
    words = without_first(words, has_value ? 2 : 1);
    if (option == "--") break;
  }
  return without_first(words, wrapper.operands);
}

bool is_name_start(char c) {
  return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool is_assignment(std::string_view word) {
  return !word.empty() && is_name_start(word[0]) && word.find('=') != word.npos;
}

// Returns whether OpenMPI's mpirun has this option without a value, with one dash or two.
bool is_flag(std::string_view name) {
  static constexpr std::array<std::string_view, 36> kFlags = {"allow-run-as-root",
                                                              "bind-to-core",
                                                              "bind-to-none",
                                                              "bind-to-socket",
                                                              "bycore",
                                                              "bynode",
                                                              "byslot",
                                                              "bysocket",
                                                              "continuous",
                                                              "d",
                                                              "debug-daemons",
                                                              "disable-recovery",
                                                              "display-allocation",
                                                              "display-devel-map",
                                                              "display-map",
                                                              "display-topo",
                                                              "do-not-launch",
                                                              "enable-recovery",
                                                              "get-stack-traces",
                                                              "h",
                                                              "help",
                                                              "index-argv-by-rank",
                                                              "keep-fqdn-hostnames",
                                                              "leave-session-attached",
                                                              "nolocal",
                                                              "nooversubscribe",
                                                              "oversubscribe",
                                                              "pernode",
                                                              "q",
                                                              "quiet",
                                                              "report-bindings",
                                                              "tag-output",
                                                              "timestamp-output",
                                                              "use-hwthread-cpus",
                                                              "v",
                                                              "verbose"};
  return std::ranges::find(kFlags, name) != kFlags.end();
}

// Returns whether the option has exactly one value, which may come from a variable.
bool has_one_value(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kOptions = {
      "n",    "np",       "c",           "N",      "npernode", "H",
      "host", "hostfile", "machinefile", "map-by", "x",        "wdir"};
  return std::ranges::find(kOptions, name) != kOptions.end();
}

// An unknown option counts as one with a value: if its value were taken for the program, a `-x`
// behind it would not be seen.
std::size_t count_values(std::string_view name) {
  if (is_flag(name) || name.empty() || name.find('=') != name.npos) return 0;
  return name.ends_with("mca") ? 2 : 1;
}

// This is the commands of a script, each with its words, as far as this file needs them: quotes,
// operators and comments are read, and nothing is expanded.
class Script {
 public:
  explicit Script(std::string_view text) : text_(text) {}
  std::vector<std::vector<std::string>> commands() {
    while (at_ < text_.size()) read(text_[at_++]);
    end_command();
    return std::move(commands_);
  }

 private:
  void read(char c) {
    if (c == '\'' || c == '"') return read_quoted(c);
    if (c == '\\') return read_escaped();
    if (c == '#' && !is_in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == ' ' || c == '\t') {
      end_word();
    } else if (std::string_view("\n;|&()").find(c) != std::string_view::npos) {
      end_command();
    } else {
      add(c);
    }
  }
  void read_quoted(char quote) {
    is_in_word_ = true;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote) return;
      if (c == '\\' && quote == '"')
        read_escaped();
      else
        add(c);
    }
  }
  void read_escaped() {
    if (at_ == text_.size()) return;
    const char c = text_[at_++];
    if (c != '\n') add(c);  // if it is a line feed, the line goes on
  }
  void add(char c) {
    word_ += c;
    is_in_word_ = true;
  }
  void end_word() {
    if (is_in_word_) command_.push_back(std::move(word_));
    word_.clear();
    is_in_word_ = false;
  }
  void end_command() {
    end_word();
    if (!command_.empty()) commands_.push_back(std::move(command_));
    command_.clear();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string word_;
  bool is_in_word_ = false;
  std::vector<std::string> command_;
  std::vector<std::vector<std::string>> commands_;
};

class Reader {
 public:
  void read_command(Words words);
  CommandLine result() {
    using Start = CommandLine::Start;
    line_.start = !is_seen_ || is_hidden_ ? Start::kUnknown
                  : is_about_variables_   ? Start::kExports
                                          : Start::kMpirun;
    return std::move(line_);
  }

 private:
  void read_shell(Words words);
  void read_options(Words words);
  void look_for_list(std::string_view word) {
    if (word.find("mca_base_env") != word.npos) is_about_variables_ = true;
  }

  CommandLine line_;
  bool is_seen_ = false;             // mpirun is visible
  bool is_hidden_ = false;           // some of its options are not visible
  bool is_about_variables_ = false;  // OpenMPI 4 ends with an error if a list meets an option
};

void Reader::read_command(Words words) {
  while (!words.empty()) {
    const std::string_view name = std::string_view(words[0]).substr(words[0].rfind('/') + 1);
    if (is_mpirun(name)) return read_options(without_first(words));
    if (is_shell(name)) return read_shell(without_first(words));
    const auto* const wrapper = std::ranges::find(kWrappers, name, &Wrapper::name);
    if (wrapper != kWrappers.end()) {
      words = behind(*wrapper, without_first(words));
    } else {
      look_for_list(words[0]);
      if (!is_assignment(words[0])) break;
      words = without_first(words);
    }
  }
  // A command such as `export NAME=VALUE`.
  for (const std::string& word : words) look_for_list(word);
}

// The commands in a file that a shell runs are not visible.
void Reader::read_shell(Words words) {
  bool is_text = false;
  while (!words.empty() && (words[0].starts_with('-') || words[0].starts_with('+'))) {
    const std::string& option = words[0];
    words = without_first(words);
    if (option == "--") break;
    if (option.starts_with("--")) continue;
    is_text = is_text || option.find('c') != option.npos;
    // The option has a value, such as in `-o pipefail`.
    if (option.ends_with('o')) words = without_first(words);
  }
  if (!is_text || words.empty()) return;
  for (const auto& command : Script(words[0]).commands()) read_command(command);
}

void Reader::read_options(Words words) {
  const auto is_hidden = [](const std::string& word) {
    return word.find_first_of("$`<>") != word.npos;
  };
  is_seen_ = true;
  while (!words.empty()) {
    const std::string& word = words[0];
    words = without_first(words);
    is_hidden_ = is_hidden_ || is_hidden(word);
    if (!word.starts_with('-') || word == "--") {
      // The words that follow are the program's own, up to a `:` before the options of another
      // program.
      const auto colon = std::ranges::find(words, ":");
      words = without_first(words, static_cast<std::size_t>(colon - words.begin()) + 1);
      continue;
    }
    const std::string_view name = std::string_view(word).substr(word.starts_with("--") ? 2 : 1);
    const std::size_t count = count_values(name);
    for (const std::string& value : words.first(std::min(count, words.size()))) {
      is_hidden_ = is_hidden_ || (is_hidden(value) && !has_one_value(name));
      look_for_list(value);
      if (name == "x" && !value.empty() && is_name_start(value[0]))
        line_.exported.emplace(value.substr(0, value.find('=')));
    }
    if (name == "x" || name == "tune") is_about_variables_ = true;
    words = without_first(words, count);
  }
}

}  // namespace

CommandLine read_command_line(const std::vector<std::string_view>& words) {
  Reader reader;
  reader.read_command(std::vector<std::string>(words.begin(), words.end()));
  return reader.result();
}

}  // namespace trainer::pipeline::mpi
